/* undo_plan: several steps combined into one plan; see undo_plan.h. */
#include "undo/undo_plan.h"

#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FROM_GIT = UINT32_MAX }; /* used as log number: the log that git_contents wrote */

void undo_plan_init(struct undo_plan *plan)
{
	*plan = (struct undo_plan){.whole = true};
	arena_init(&plan->paths);
}

void undo_plan_fini(struct undo_plan *plan)
{
	free(plan->items);
	value_free(plan->refused.names);
	arena_fini(&plan->paths);
}

static bool take_change(void *context, const struct undo_change *change)
{
	struct undo_plan *plan = context;

	if (plan->count >= UNDO_CHANGES_MAX)
		return false;
	if (plan->count == plan->room) {
		plan->room = plan->room > 0 ? 2 * plan->room : 64;
		plan->items = memory_grow(plan->items, plan->room, sizeof(*plan->items));
	}
	plan->items[plan->count] = (struct undo_item){
		.path = {arena_copy(&plan->paths, change->path), change->path.size},
		.order = plan->count,
		.target = change->before,
		.expected = change->after,
	};
	plan->count++;
	return true;
}

bool undo_plan_add(struct undo_plan *plan, const struct undo_store *store,
		   uint32_t number, struct err *err)
{
	struct undo_reader reader = {.change = take_change, .context = plan};

	if (!undo_store_read_log(store, number, plan->own, &reader, &plan->refused, err))
		return false;
	plan->whole = plan->whole && reader.ended;
	return plan->count < UNDO_CHANGES_MAX ||
	       err_set(err, E2BIG, "over %d changes at once", UNDO_CHANGES_MAX);
}

static int compare_items(const void *a, const void *b)
{
	const struct undo_item *left = a, *right = b;
	int order = strcmp(left->path.data, right->path.data);

	return order != 0 ? order
			  : (left->order > right->order) - (left->order < right->order);
}

void undo_plan_settle(struct undo_plan *plan)
{
	size_t kept = 0;

	if (plan->count == 0)
		return;
	qsort(plan->items, plan->count, sizeof(*plan->items), compare_items);
	for (size_t i = 0; i < plan->count;) {
		struct undo_item item = plan->items[i];
		size_t next = i + 1;

		for (; next < plan->count && str_equal(plan->items[next].path, item.path);
		     next++)
			item.expected = plan->items[next].expected;
		if (!undo_state_same(&item.target, &item.expected))
			plan->items[kept++] = item;
		i = next;
	}
	plan->count = kept;
}

static struct undo_item *find_item(const struct undo_plan *plan, struct str path)
{
	const struct undo_item wanted = {.path = path};
	size_t low = 0, high = plan->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(plan->items[middle].path.data, wanted.path.data);
		if (order == 0)
			return &plan->items[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

bool undo_plan_touches(const struct undo_plan *plan, struct str path)
{
	return find_item(plan, path) != NULL;
}

bool undo_plan_takes_repository(const struct undo_plan *plan)
{
	const struct undo_item *item = find_item(plan, STR(UNDO_GIT));

	return item != NULL && item->target.kind == UNDO_ABSENT;
}

size_t undo_plan_wants_git(const struct undo_plan *plan)
{
	size_t count = 0;

	for (size_t i = 0; i < plan->count; i++)
		count += plan->items[i].target.source == UNDO_IN_GIT;
	return count;
}

bool undo_plan_print_wanted(const struct undo_plan *plan, int fd, struct err *err)
{
	struct undo_log log;
	bool fine = true;

	undo_log_begin(&log, fd, 0);
	for (size_t i = 0; fine && i < plan->count; i++) {
		const struct undo_item *item = &plan->items[i];
		if (item->target.source == UNDO_IN_GIT)
			fine = undo_log_change(&log, item->path, &undo_absent,
					       &item->target, err);
	}
	return fine && undo_log_end(&log, err);
}

static bool take_content(void *context, const struct undo_change *change)
{
	struct undo_item *item = find_item(context, change->path);

	/* Accept only contents that were asked for, in the size that was asked for. */
	if (item == NULL || item->target.source != UNDO_IN_GIT ||
	    change->after.source != UNDO_LOGGED || change->after.size != item->target.size)
		return true;
	const mode_t mode = item->target.mode;
	item->target = change->after;
	item->target.mode = mode;
	item->target.kind = UNDO_FILE;
	item->target.log = FROM_GIT;
	return true;
}

bool undo_plan_take_git(struct undo_plan *plan, int fd, struct err *err)
{
	struct undo_reader reader = {.change = take_content, .context = plan};

	return undo_log_read(&reader, fd, err);
}

static bool in_part(struct str path, enum undo_part part)
{
	return (part & (undo_is_gits(path) ? UNDO_PART_GIT : UNDO_PART_REST)) != 0;
}

/* Open the log or link that holds the content; -1: neither holds it. */
static int open_source(const struct undo_store *store, const struct undo_item *item)
{
	static const char objects[] = ".git/objects/";

	if (item->target.source == UNDO_LOGGED)
		return undo_store_open_log(store, item->target.log, false);
	if (item->target.source == UNDO_LINKED &&
	    str_starts(item->path, (struct str){objects, sizeof(objects) - 1}))
		return undo_store_linked(store, item->path.data + sizeof(objects) - 1);
	return -1;
}

/* The last log stays open, because many items in a row need the same one. */
struct printing {
	struct undo_log log;
	int source;
	uint32_t number;
};

static bool print_content(struct printing *printing, const struct undo_store *store,
			  const struct undo_item *item, int from_git,
			  struct undo_state *state, struct err *err)
{
	struct undo_state kept = item->target;
	struct stat st;

	if (kept.source == UNDO_LOGGED && kept.log == FROM_GIT)
		return undo_log_copy(&printing->log, from_git, &kept, state, err);
	if (kept.source != UNDO_LOGGED || printing->source < 0 ||
	    printing->number != kept.log) {
		fd_close(&printing->source);
		printing->source = open_source(store, item);
		printing->number = kept.source == UNDO_LOGGED ? kept.log : 0;
	}
	if (printing->source < 0)
		return err_set(err, EIO, "it was not kept");
	if (kept.source == UNDO_LINKED) {
		if (fstat(printing->source, &st) < 0 || !S_ISREG(st.st_mode) ||
		    st.st_size > UNDO_CONTENT_MAX)
			return err_set(err, EIO, "it was not kept");
		kept.offset = 0;
		kept.extra = 0;
		kept.size = (uint64_t)st.st_size;
	}
	return undo_log_copy(&printing->log, printing->source, &kept, state, err);
}

static bool has_content(const struct undo_state *state)
{
	return state->kind == UNDO_FILE || state->kind == UNDO_LINK;
}

bool undo_plan_print(const struct undo_plan *plan, const struct undo_store *store,
		     enum undo_part part, bool with_contents, int from_git, int fd,
		     bool may_miss, struct err *err)
{
	struct printing printing = {.source = -1};
	bool fine = true;

	undo_log_begin(&printing.log, fd, 0);
	for (size_t i = 0; fine && i < plan->count; i++) {
		const struct undo_item *item = &plan->items[i];
		struct undo_state target = item->target;
		struct err why = {0};

		if (!in_part(item->path, part))
			continue;
		if (with_contents && has_content(&target) &&
		    !print_content(&printing, store, item, from_git, &target, &why)) {
			if (!may_miss || why.code == ENOSPC) {
				fine = err_set(err, EIO, "%.300s: %s", item->path.data,
					       why.text);
				continue;
			}
			target = item->target;
			target.source = UNDO_NOWHERE;
		}
		fine = undo_log_change(&printing.log, item->path, &item->expected,
				       &target, err);
	}
	fd_close(&printing.source);
	return fine && undo_log_end(&printing.log, err);
}
