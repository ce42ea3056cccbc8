/* plan: combines several steps into one plan, and prints and reads it. */

#include "undo/plan.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "files/record.h"
#include "undo/list.h"
#include "undo/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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
	if (plan->within != NULL)
		undo_plan_fini(plan->within);
	free(plan->within);
	free(plan->items);
	value_free(plan->refused.names);
	arena_fini(&plan->paths);
}

static bool take_change(void *context, const struct undo_change *change)
{
	struct undo_plan *plan = context;

	if (plan->count >= UNDO_CHANGES_MAX)
		return false;
	plan->items = memory_more(plan->items, plan->count, sizeof(*plan->items));
	plan->items[plan->count] = (struct undo_item){
		.path = {arena_copy(&plan->paths, change->path), change->path.size},
		.order = plan->count,
		.target = change->before,
		.expected = change->after,
	};
	plan->count++;
	return true;
}

/* Add the changes of the step NUMBER as its log has them. */
static bool add_log(struct undo_plan *plan, const struct undo_store *store,
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

/*
 * Has somebody else changed the file between the change EARLIER that left it in AFTER and
 * LATER, which found it in BEFORE? Two contents count as the same when one of them was not
 * read. A file that LATER found as EARLIER had found it was put back, or EARLIER is of a process
 * that was killed before it made the change: nothing of anybody's is lost with both.
 */
static bool is_torn(const struct undo_item *earlier, const struct undo_item *later)
{
	const struct undo_state *after = &earlier->expected, *before = &later->target;

	if (undo_state_same(&earlier->target, before))
		return false;
	if (after->kind == UNDO_FILE && before->kind == UNDO_FILE &&
	    !(after->hashed && before->hashed) && after->mode == before->mode)
		return false;
	return !undo_state_same(after, before);
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
		     next++) {
			const struct undo_item *later = &plan->items[next];

			if (plan->torn.data == NULL && !item.beside && !later->beside &&
			    is_torn(&plan->items[next - 1], later))
				plan->torn = item.path;
			item.expected = later->expected;
		}
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

/* Steps that lie within each other, because file tools wrote while a command ran. */

/* Fill INTO with the changes of the COUNT steps NUMBERS; those that are gone are left out. */
static void fill_beside(struct undo_plan *into, const struct undo_plan *plan,
			const struct undo_store *store, const uint32_t *numbers,
			size_t count)
{
	undo_plan_init(into);
	into->own = plan->own;
	for (size_t i = 0; i < count; i++)
		(void)add_log(into, store, numbers[i], NULL);
	undo_plan_settle(into);
}

/* The changes of the step COMMAND. Several tools in a row want the same. */
static const struct undo_plan *within_read(struct undo_plan *plan,
					   const struct undo_store *store, uint32_t command)
{
	if (plan->within != NULL && plan->within_number == command)
		return plan->within;
	if (plan->within != NULL)
		undo_plan_fini(plan->within);
	else
		plan->within = memory_alloc(sizeof(*plan->within));
	plan->within_number = command;
	fill_beside(plan->within, plan, store, &command, 1);
	return plan->within;
}

/*
 * The items from FIRST on are of a tool's step, and the steps LATER of tools follow it within
 * the same command: what the command wrote before the next of them belongs to this step. No
 * other step goes back behind that.
 */
static void take_until(struct undo_plan *plan, size_t first, const struct undo_plan *later)
{
	for (size_t i = first; i < plan->count; i++) {
		const struct undo_item *next = find_item(later, plan->items[i].path);

		if (next != NULL)
			plan->items[i].expected = next->target;
	}
}

/*
 * The items from FIRST on are of the tool's step NUMBER, within the step COMMAND: where no
 * earlier tool of these has written the file, they go back to the state before COMMAND.
 */
static void take_older(struct undo_plan *plan, size_t first,
		       const struct undo_store *store, uint32_t number, uint32_t command)
{
	struct undo_beside beside;
	struct undo_plan earlier, later;
	size_t count = 0;

	undo_store_read_beside(store, command, &beside);
	while (count < beside.count && beside.tools[count] < number)
		count++;
	fill_beside(&earlier, plan, store, beside.tools, count);
	const struct undo_plan *within = within_read(plan, store, command);
	for (size_t i = first; i < plan->count; i++) {
		struct undo_item *item = &plan->items[i];
		const struct undo_item *older = find_item(within, item->path);

		if (older != NULL && find_item(&earlier, item->path) == NULL)
			item->target = older->target;
	}
	undo_plan_fini(&earlier);
	while (count < beside.count && beside.tools[count] <= number)
		count++;
	fill_beside(&later, plan, store, beside.tools + count, beside.count - count);
	take_until(plan, first, &later);
	undo_plan_fini(&later);
}

/*
 * The items from FIRST on are of a command's step: leave out the files that are as the
 * tools BESIDE it have left them.
 */
static void leave_to_tools(struct undo_plan *plan, size_t first,
			   const struct undo_store *store, const struct undo_beside *beside)
{
	struct undo_plan tools;
	size_t kept = first;

	fill_beside(&tools, plan, store, beside->tools, beside->count);
	for (size_t i = first; i < plan->count; i++) {
		const struct undo_item *item = &plan->items[i];
		const struct undo_item *tool = find_item(&tools, item->path);

		if (tool != NULL && undo_state_same(&tool->expected, &item->expected))
			continue;
		plan->mixed = plan->mixed || tool != NULL;
		plan->items[kept++] = *item;
	}
	plan->count = kept;
	/* Further tools may have written, whose steps were not noted. */
	plan->mixed = plan->mixed || beside->count == UNDO_BESIDE_MAX;
	undo_plan_fini(&tools);
}

bool undo_plan_add(struct undo_plan *plan, const struct undo_store *store,
		   uint32_t number, struct err *err)
{
	const size_t first = plan->count;
	struct undo_beside beside;

	if (!add_log(plan, store, number, err))
		return false;
	undo_store_read_beside(store, number, &beside);
	for (size_t i = first; i < plan->count; i++)
		plan->items[i].beside = beside.within != 0 || beside.count > 0;
	if (beside.within != 0)
		take_older(plan, first, store, number, beside.within);
	if (beside.count > 0)
		leave_to_tools(plan, first, store, &beside);
	return true;
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

/*
 * A file that could not be read after the step has only the name of git's object in its
 * state. If that object is the one whose content is CONTENT, the file has this digest.
 */
static void take_digest(struct undo_item *item, const struct undo_state *content)
{
	const struct undo_state *target = &item->target;
	struct undo_state *expected = &item->expected;

	if (expected->kind != UNDO_FILE || expected->hashed || !content->hashed ||
	    expected->object_size == 0 || expected->object_size != target->object_size ||
	    expected->size != target->size ||
	    memcmp(expected->object, target->object, target->object_size) != 0)
		return;
	expected->hashed = true;
	memcpy(expected->digest, content->digest, UNDO_DIGEST);
}

static bool take_content(void *context, const struct undo_change *change)
{
	struct undo_item *item = find_item(context, change->path);

	/* Accept only contents that were asked for, in the size that was asked for. */
	if (item == NULL || item->target.source != UNDO_IN_GIT ||
	    change->after.source != UNDO_LOGGED || change->after.size != item->target.size)
		return true;
	const mode_t mode = item->target.mode;
	take_digest(item, &change->after);
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
	return (part & (record_is_gits(path) ? UNDO_PART_GIT : UNDO_PART_REST)) != 0;
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
	errno = ENOENT;
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
		return err_set(err, errno, "what was kept: %s", strerror(errno));
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

/* Is something else than the content missing, so that it may be had at the next try? */
static bool may_pass(int code)
{
	static const int codes[] = {ENOSPC, EDQUOT, EMFILE, ENFILE,
				    ENOMEM, EACCES, EPERM};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		if (code == codes[i])
			return true;
	}
	return false;
}

bool undo_plan_print(const struct undo_plan *plan, const struct undo_store *store,
		     enum undo_part part, bool with_contents, int from_git, int fd,
		     struct err *err)
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
			if (may_pass(why.code)) {
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

const struct undo_step *undo_aim_step(const struct undo_steps *steps, uint32_t number)
{
	for (size_t i = steps->count; i-- > 0;) {
		const struct undo_step *step = &steps->steps[i];

		if (number != 0 ? step->number == number
				: !step->undone && step->work != UNDO_BY_UNDO &&
					  undo_step_changes(step))
			return step;
	}
	return NULL;
}

bool undo_aim_widen(struct undo_aim *aim, const struct undo_steps *steps)
{
	const struct undo_step *step = undo_aim_step(steps, aim->step);

	if (step == NULL)
		return false;
	aim->step = step->number;
	if (step->turn_ms == 0 || step->work == UNDO_BY_UNDO)
		return true;
	aim->run = step->run;
	aim->turn_ms = step->turn_ms;
	for (size_t i = 0; i < steps->count; i++) {
		if (steps->steps[i].number > aim->step &&
		    steps->steps[i].turn_ms == aim->turn_ms &&
		    strcmp(steps->steps[i].run, aim->run) == 0)
			aim->step = steps->steps[i].number;
	}
	return true;
}

/* The step POINT, or the newest mark of that name; NULL: there is neither. */
static const struct undo_step *find_point(const struct undo_steps *steps, const char *point)
{
	uint64_t number = 0;

	if (text_parse_count(point, UINT32_MAX, &number, NULL))
		return number > 0 ? undo_aim_step(steps, (uint32_t)number) : NULL;
	for (size_t i = steps->count; i-- > 0;) {
		if (steps->steps[i].work == UNDO_MARK &&
		    strcmp(steps->steps[i].title, point) == 0)
			return &steps->steps[i];
	}
	return NULL;
}

bool undo_aim_to(struct undo_aim *aim, const char *folder, const char *workspace,
		 const char *point, struct err *err)
{
	struct undo_store *store = NULL;
	struct undo_steps steps = {0};
	const struct undo_step *step = NULL;

	if (folder != NULL && undo_store_open_old(folder, workspace, &store, NULL) &&
	    store != NULL && undo_store_steps(store, &steps, NULL))
		step = find_point(&steps, point);
	if (step != NULL)
		*aim = (struct undo_aim){.step = step->number, .above = true};
	undo_steps_fini(&steps);
	undo_store_close(store);
	return step != NULL ||
	       err_set(err, ENOENT,
		       "\"%.100s\": there is no such step or mark; see: glovebox undo --list",
		       point);
}

/* Is NAME a name for a mark? A number would be taken for a step. */
static bool is_mark_name(const char *name)
{
	const size_t size =
		strspn(name,
		       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return size > 0 && size <= UNDO_MARK_MAX && name[size] == '\0' &&
	       name[0] != '-' && strspn(name, "0123456789") < size;
}

bool undo_aim_mark(const char *folder, const char *workspace, const char *name,
		   uint32_t *number, struct err *err)
{
	auto_value struct value *nobodys = value_new_object();
	const struct undo_meta meta = {
		.work = UNDO_MARK,
		.run = "",
		.title = str_of(name),
		.wall_ms = clock_wall_ms(),
	};
	struct undo_store *store = NULL;
	auto_close int log = -1;

	if (!is_mark_name(name))
		return err_set(err, EINVAL,
			       "\"%.100s\": a mark is named by up to %d letters, digits and "
			       "._-, and not by a number",
			       name, UNDO_MARK_MAX);
	if (folder == NULL)
		return err_set(err, ENOENT, "\"%s\": there is no home folder", name);
	if (!undo_store_open(folder, workspace, &store, err))
		return false;
	/* It changes nothing, so nobody has to be able to change that. */
	undo_store_set_rights(store, nobodys);
	log = undo_store_new_log(store, &meta, number, err);
	undo_store_close(store);
	return log >= 0;
}

/*
 * A step that was undone is above another one as well, like the undo of it: both lie
 * between the state then and the present one.
 */
bool undo_aim_has(const struct undo_aim *aim, const struct undo_step *step)
{
	if (aim->above)
		return step->number > aim->step;
	return step->work != UNDO_BY_UNDO && step->number <= aim->step &&
	       (aim->turn_ms == 0 || step->turn_ms == aim->turn_ms) &&
	       strcmp(step->run, aim->run) == 0;
}

static bool plan_fill(const struct undo_aim *aim, const struct undo_store *store,
		      const struct undo_steps *steps, struct undo_plan *plan)
{
	if (aim->run == NULL && !aim->above) {
		const struct undo_step *step = undo_aim_step(steps, aim->step);
		return step == NULL || undo_plan_add(plan, store, step->number, NULL);
	}
	for (size_t i = 0; i < steps->count; i++) {
		const struct undo_step *step = &steps->steps[i];
		if (undo_aim_has(aim, step) && (aim->above || !step->undone) &&
		    !undo_plan_add(plan, store, step->number, NULL))
			return false;
	}
	return true;
}

void undo_aim_plan(const struct undo_aim *aim, const char *folder, const char *workspace,
		   struct undo_plan *plan)
{
	struct undo_store *store = NULL;
	struct undo_steps steps = {0};

	if (folder != NULL && undo_store_open_old(folder, workspace, &store, NULL) &&
	    store != NULL && undo_store_steps(store, &steps, NULL) &&
	    plan_fill(aim, store, &steps, plan))
		undo_plan_settle(plan);
	else
		plan->count = 0;
	undo_steps_fini(&steps);
	undo_store_close(store);
}

enum { FILES_SHOWN = 20 };

#define REMOVED "removed"

void undo_told_init(struct undo_told *told)
{
	*told = (struct undo_told){.files = value_new_object(), .left = value_new_array()};
}

void undo_told_fini(struct undo_told *told)
{
	value_free(told->files);
	value_free(told->left);
}

static int64_t *count_of(struct undo_told *told, const char *became)
{
	return str_is(str_of(became), REMOVED) ? &told->removed : &told->restored;
}

/*
 * When several steps have changed a file, the oldest step, which is undone last, decides
 * what became of it.
 */
static void add_file(struct undo_told *told, const char *path, const char *became)
{
	const char *before = value_text(value_member(told->files, path));

	if (before != NULL)
		--*count_of(told, before);
	++*count_of(told, became);
	value_set_text(told->files, path, became);
}

const struct field undo_patch_limits_fields[] = {
	FIELD(struct undo_patch_limits, without_commands, .optional = true),
	FIELD(struct undo_patch_limits, lost),
	FIELD(struct undo_patch_limits, outside, .optional = true),
	{0},
};

/*
 * The details that TOLD becomes, and those of the tool restore; `files` is a list there. A
 * worker tells them, so that no number is believed that no list of files has.
 */
static const struct field told_fields[] = {
	FIELD(struct undo_told, restored, .max = UNDO_ROWS_MAX),
	FIELD(struct undo_told, removed, .max = UNDO_ROWS_MAX),
	FIELD(struct undo_told, folders, .max = UNDO_ROWS_MAX),
	FIELD(struct undo_told, already, .max = UNDO_ROWS_MAX),
	FIELD(struct undo_told, files),
	FIELD(struct undo_told, left),
	{0},
};

struct told_file {
	const char *path, *became;
};

static const struct field file_fields[] = {
	FIELD(struct told_file, path),
	FIELD(struct told_file, became),
	{0},
};

void undo_told_add(struct undo_told *told, const struct value *details)
{
	struct undo_told more = {0};

	(void)fields_read(details, told_fields, &more, NULL, NULL);
	told->restored += more.restored;
	told->removed += more.removed;
	told->folders += more.folders;
	told->already += more.already;
	for (size_t i = 0; i < value_count(more.files); i++) {
		struct told_file file;

		if (!fields_read(value_item(more.files, i), file_fields, &file, NULL, NULL))
			continue;
		--*count_of(told, file.became); /* the file was counted above already */
		add_file(told, file.path, file.became);
	}
	for (size_t i = 0; i < value_count(more.left); i++)
		value_append(told->left, value_ref(value_item(more.left, i)));
}

void undo_told_print_files(const struct undo_told *told, struct buf *text)
{
	const int64_t all = told->restored + told->removed;
	int64_t shown = 0, gits = 0;

	for (void *at = value_first(told->files); at != NULL;
	     at = value_next(told->files, at)) {
		if (record_is_gits(str_of(value_key(at)))) {
			gits++;
		} else if (shown < FILES_SHOWN) {
			shown++;
			(void)buf_addf(text, "  %-8s  %s\n", value_text(value_at(at)),
				       value_key(at));
		}
	}
	if (all > shown + gits)
		(void)buf_addf(text, "  and %" PRId64 " more\n", all - shown - gits);
	if (gits > 0)
		(void)buf_addf(text, "  and %" PRId64 " in %s\n", gits, UNDO_GIT);
}

void undo_told_print_counts(const struct undo_told *told, struct buf *text)
{
	if (told->restored == 0 && told->removed == 0 && told->folders > 0) {
		(void)text_add_count(text, (size_t)told->folders, "folder");
		(void)buf_adds(text, " as before");
	} else if (told->restored > 0 || told->removed == 0) {
		(void)text_add_count(text, (size_t)told->restored, "file");
		(void)buf_adds(text, " restored");
	}
	if (told->restored > 0 && told->removed > 0)
		(void)buf_addf(text, ", %" PRId64 " removed", told->removed);
	else if (told->removed > 0) {
		(void)text_add_count(text, (size_t)told->removed, "file");
		(void)buf_adds(text, " removed");
	}
	if (told->already > 0)
		(void)buf_addf(text, ", %" PRId64 " already as before", told->already);
}

void undo_told_print_left(const struct undo_told *told, struct buf *text)
{
	for (size_t i = 0; i < value_count(told->left); i++)
		(void)buf_addf(text, "Left alone: %s\n",
			       value_text(value_item(told->left, i)));
}

void undo_told_details(const struct undo_told *told, struct value *details)
{
	auto_value struct value *files = value_new_array();
	struct undo_told said = *told;

	for (void *at = value_first(told->files); at != NULL;
	     at = value_next(told->files, at)) {
		const struct told_file file = {value_key(at), value_text(value_at(at))};

		value_append(files, fields_print(file_fields, &file));
	}
	said.files = files;
	fields_set(details, told_fields, &said);
}
