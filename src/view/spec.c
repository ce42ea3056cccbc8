/* spec: fills a specification; its lists grow in an arena. */

#include "view/spec.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/value.h"
#include "files/files.h"
#include "guard/guard.h"
#include "policy/network.h"
#include "sandbox/sandbox.h"
#include "sandbox/view.h"
#include "tool/call.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

void spec_init(struct cell_spec *spec)
{
	static const char *none[] = {NULL};
	static const struct spec_list empty = {.items = none};

	*spec = (struct cell_spec){.mapping = {.fd = -1},
				   .view.late = -1,
				   .workspace_tree = -1,
				   .home_lock = -1,
				   .review_log = -1,
				   .temp_lock = -1,
				   .cache_lock = -1,
				   .leftovers = empty,
				   .writable = empty,
				   .made = empty,
				   .blocked = empty,
				   .closed = empty,
				   .network = empty,
				   .brokered = empty,
				   .environment = empty};
	for (size_t i = 0; i < CGROUP_FOLDERS; i++)
		spec->doors[i] = -1;
	arena_init(&spec->arena);
}

void spec_fini(struct cell_spec *spec)
{
	for (size_t i = 0; i < spec->view.count; i++)
		fd_close(&spec->view.entries[i].fd);
	fd_close(&spec->view.late);
	sandbox_close_mapping(&spec->mapping);
	fd_close(&spec->workspace_tree);
	fd_close(&spec->home_lock);
	fd_close(&spec->review_log);
	for (size_t i = 0; i < CGROUP_FOLDERS; i++)
		fd_close(&spec->doors[i]);
	fd_close(&spec->temp_lock);
	fd_close(&spec->cache_lock);
	guard_free(spec->guard);
	value_free(spec->parsed);
	arena_fini(&spec->arena);
	spec_init(spec);
}

const char *spec_shown(const struct cell_spec *spec)
{
	return spec->at != NULL ? spec->at : spec->workspace;
}

bool spec_is_sealed(const struct cell_spec *spec)
{
	return spec->built >= SANDBOX_SEALED;
}

bool spec_is_blocked(const struct cell_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->blocked.count; i++) {
		if (path_within(path, spec->blocked.items[i]))
			return true;
	}
	return false;
}

static const char *keep(struct cell_spec *spec, const char *text)
{
	return text == NULL ? NULL : arena_copy(&spec->arena, str_of(text));
}

/*
 * Make a copy that is one item longer. That is good enough, because the lists are short
 * and made once.
 */
void spec_add(struct cell_spec *spec, struct spec_list *list, const char *text)
{
	const char **longer =
		arena_alloc(&spec->arena, (list->count + 2) * sizeof(longer[0]));

	memcpy(longer, list->items, list->count * sizeof(longer[0]));
	longer[list->count++] = keep(spec, text);
	list->items = longer;
}

struct view_entry *spec_add_entry(struct cell_spec *spec, enum view_kind kind,
				  const char *path, const char *source)
{
	struct view *view = &spec->view;

	if (view->count == spec->view_capacity) {
		size_t capacity = spec->view_capacity * 2 + 64;
		struct view_entry *more =
			arena_alloc(&spec->arena, capacity * sizeof(more[0]));
		if (view->count > 0)
			memcpy(more, view->entries, view->count * sizeof(more[0]));
		view->entries = more;
		spec->view_capacity = capacity;
	}
	struct view_entry *entry = &view->entries[view->count++];
	*entry = (struct view_entry){
		.kind = kind,
		.path = keep(spec, path),
		.source = keep(spec, source),
		.fd = -1,
		.layer = -1,
		.mode = 0755,
	};
	return entry;
}

void spec_add_root(struct cell_spec *spec, const char *path, bool writable,
		   const char *pattern)
{
	struct files_root *more =
		arena_alloc(&spec->arena, (spec->root_count + 1) * sizeof(more[0]));

	if (spec->root_count > 0)
		memcpy(more, spec->roots, spec->root_count * sizeof(more[0]));
	more[spec->root_count++] =
		(struct files_root){keep(spec, path), writable, keep(spec, pattern)};
	spec->roots = more;
}

void spec_add_environment(struct cell_spec *spec, const char *format, ...)
{
	va_list arguments;
	struct buf text;

	buf_init(&text, 1 << 20);
	va_start(arguments, format);
	bool ok = buf_addv(&text, format, arguments);
	for (size_t i = 0; ok && i < spec->environment.count; i++)
		ok = strcmp(spec->environment.items[i], text.data) != 0;
	if (ok)
		spec_add(spec, &spec->environment, text.data);
	va_end(arguments);
	buf_fini(&text);
}

void spec_set_environment(struct cell_spec *spec, const char *entry)
{
	size_t length = strcspn(entry, "=") + 1;

	for (size_t i = 0; i < spec->environment.count; i++) {
		if (strncmp(spec->environment.items[i], entry, length) == 0) {
			spec->environment.items[i] = keep(spec, entry);
			return;
		}
	}
	spec_add(spec, &spec->environment, entry);
}

const char *spec_variable(const struct cell_spec *spec, const char *name)
{
	const size_t length = strlen(name);

	for (size_t i = 0; i < spec->environment.count; i++) {
		const char *entry = spec->environment.items[i];

		if (strncmp(entry, name, length) == 0 && entry[length] == '=')
			return entry + length + 1;
	}
	return NULL;
}

void spec_add_git(struct cell_spec *spec, const char *key, const char *value)
{
	const char *given = spec_variable(spec, "GIT_CONFIG_COUNT");
	char *end = NULL;
	const unsigned long count = given != NULL ? strtoul(given, &end, 10) : 0;
	char entry[sizeof("GIT_CONFIG_COUNT=") + 3 * sizeof(count)];

	if (count > SPEC_GIT_MAX || (end != NULL && (end == given || *end != '\0')))
		return;
	spec_add_environment(spec, "GIT_CONFIG_KEY_%lu=%s", count, key);
	spec_add_environment(spec, "GIT_CONFIG_VALUE_%lu=%s", count, value);
	(void)snprintf(entry, sizeof(entry), "GIT_CONFIG_COUNT=%lu", count + 1);
	spec_set_environment(spec, entry);
}

static const struct view_entry *find_entry(const struct cell_spec *spec,
					   enum view_kind kind, const char *path)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		if (spec->view.entries[i].kind == kind &&
		    strcmp(spec->view.entries[i].path, path) == 0)
			return &spec->view.entries[i];
	}
	return NULL;
}

bool spec_is_layer(const struct cell_spec *spec, const char *path)
{
	const struct view_entry *entry = find_entry(spec, VIEW_OVERLAY, path);

	return entry != NULL && entry->lasts < VIEW_LASTS_REVIEW;
}

bool spec_is_reviewed(const struct cell_spec *spec)
{
	return spec->review_log >= 0;
}

bool spec_has_base(const struct cell_spec *spec)
{
	return find_entry(spec, VIEW_BASE, "/") != NULL;
}

bool spec_is_memory(const struct cell_spec *spec, const char *path)
{
	return find_entry(spec, VIEW_MEMORY, path) != NULL ||
	       find_entry(spec, VIEW_BASE, path) != NULL;
}

static void writable_add(struct buf *list, size_t begin, const char *path)
{
	if (strchr(path, ':') == NULL)
		(void)buf_addf(list, "%s%s", list->size > begin ? ":" : "", path);
}

void spec_set_writable(struct cell_spec *spec)
{
	struct buf list, path;

	buf_init(&list, SPEC_BYTES_MAX);
	buf_init(&path, PATH_MAX);
	(void)buf_adds(&list, SPEC_WRITABLE "=");
	const size_t begin = list.size;
	for (size_t i = 0; i < spec->root_count; i++) {
		const struct files_root *root = &spec->roots[i];

		if ((!root->writable && !spec_is_layer(spec, root->path)) ||
		    root->pattern != NULL || root->path == NULL)
			continue;
		buf_clear(&path);
		(void)buf_adds(&path, root->path);
		if (spec->at != NULL && path_move(&path, spec->workspace, spec->at))
			writable_add(&list, begin, path.data);
		writable_add(&list, begin, root->path);
	}
	spec_set_environment(spec, list.data);
	buf_fini(&path);
	buf_fini(&list);
}

void spec_widen(struct cell_spec *spec, struct cell_spec *addition)
{
	for (size_t i = 0; i < addition->view.count; i++) {
		const struct view_entry *from = &addition->view.entries[i];
		struct view_entry *entry =
			spec_add_entry(spec, from->kind, from->path, from->source);

		entry->writable = from->writable;
		entry->detached = from->detached;
		entry->why = keep(spec, from->why);
	}
	for (size_t i = 0; i < addition->root_count; i++)
		spec_add_root(spec, addition->roots[i].path, addition->roots[i].writable,
			      NULL);
	for (size_t i = 0; i < addition->writable.count; i++)
		spec_add(spec, &spec->writable, addition->writable.items[i]);
	if (addition->guard != NULL) {
		guard_free(spec->guard);
		spec->guard = addition->guard;
		addition->guard = NULL;
	}
	spec_set_writable(spec);
}

static void right_add(struct value *list, const char *path)
{
	auto_free char *key = path_key(path);

	value_append(list, value_new_text(key));
}

/*
 * The kind of storage behind PATH in the view: the host's files, a layer over them, or
 * memory of the cell.
 */
static enum view_kind kind_at(const struct cell_spec *spec, const char *path)
{
	const struct view_entry *deepest = NULL;

	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		if ((entry->kind == VIEW_TREE || entry->kind == VIEW_MEMORY ||
		     entry->kind == VIEW_OVERLAY || entry->kind == VIEW_BASE) &&
		    path_within(path, entry->path) &&
		    (deepest == NULL || strlen(entry->path) >= strlen(deepest->path)))
			deepest = entry;
	}
	if (deepest != NULL && deepest->kind == VIEW_BASE)
		return VIEW_MEMORY;
	/* The layer of a review is landed with the rights to the trees below it. */
	return deepest == NULL || (deepest->kind == VIEW_OVERLAY &&
				   deepest->lasts >= VIEW_LASTS_REVIEW)
		       ? VIEW_TREE
		       : deepest->kind;
}

static const struct field root_fields[] = {
	FIELD(struct files_root, path),
	FIELD(struct files_root, writable),
	FIELD(struct files_root, pattern, .optional = true),
	{0},
};

static struct value *rights_roots(const struct cell_spec *spec)
{
	struct value *roots = value_new_array();

	for (size_t i = 0; i < spec->root_count; i++) {
		const struct files_root *root = &spec->roots[i];
		auto_free char *key = path_key(root->path);

		/*
		 * The folder for temporary files ends with its session, and has another
		 * name in each one.
		 */
		if (spec->temp != NULL && path_within(root->path, spec->temp))
			continue;
		/* In another session, the same path may be a folder of the host. */
		if (kind_at(spec, root->path) == VIEW_MEMORY)
			continue;
		struct files_root item = *root;
		item.path = key;
		item.writable &= kind_at(spec, root->path) == VIEW_TREE;
		value_append(roots, fields_print(root_fields, &item));
	}
	return roots;
}

struct value *spec_rights(const struct cell_spec *spec)
{
	struct value *rights = value_new_object();
	struct value *hidden = value_new_array(), *closed = value_new_array();
	const struct marks *files = spec->guard != NULL ? &spec->guard->marks : NULL;

	for (size_t i = 0; i < spec->blocked.count; i++)
		right_add(hidden, spec->blocked.items[i]);
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		if (entry->kind == VIEW_MASK)
			right_add(hidden, entry->path);
		else if (entry->kind == VIEW_PIN && !entry->writable)
			right_add(closed, entry->path);
	}
	for (const struct mark *mark = marks_next(files, MARK_FILE, NULL); mark != NULL;
	     mark = marks_next(files, MARK_FILE, mark))
		right_add(closed, mark->path);
	value_set(rights, "roots", rights_roots(spec));
	value_set(rights, "hidden", hidden);
	value_set(rights, "closed", closed);
	return rights;
}

/*
 * Prints and parses a specification, to pass it to another process. The tables name the
 * members that the anchor needs.
 */

/*
 * Of the many members of an entry few are set. The others are left out: with all of them a
 * reader's memory for the object would be most of what an anchor has of its own.
 */
static const struct field entry_fields[] = {
	FIELD(struct view_entry, kind, .min = VIEW_TREE, .max = VIEW_ALSO),
	FIELD(struct view_entry, path),
	FIELD(struct view_entry, source, .optional = true),
	FIELD(struct view_entry, before, .optional = true),
	FIELD(struct view_entry, late, .optional = true),
	FIELD(struct view_entry, runs, .optional = true),
	FIELD(struct view_entry, fd),
	FIELD(struct view_entry, detached, .optional = true),
	FIELD(struct view_entry, writable, .optional = true),
	FIELD(struct view_entry, optional, .optional = true),
	FIELD(struct view_entry, apart, .optional = true),
	FIELD(struct view_entry, lasts, .max = VIEW_LASTS_NOTHING, .optional = true),
	FIELD(struct view_entry, copied, .optional = true),
	FIELD(struct view_entry, number, .max = VIEW_LOWERS_MAX, .optional = true),
	FIELD(struct view_entry, mode),
	FIELD(struct view_entry, size, .optional = true),
	{0},
};

static const struct field member_fields[] = {
	FIELD(struct cell_spec, workspace),
	FIELD(struct cell_spec, at, .optional = true),
	FIELD(struct cell_spec, home, .optional = true),
	FIELD(struct cell_spec, temp, .optional = true),
	FIELD(struct cell_spec, agent, .optional = true),
	FIELD(struct cell_spec, strength.level, .max = SANDBOX_SEALED),
	FIELD(struct cell_spec, strength.unfiltered),
	FIELD(struct cell_spec, built, .max = SANDBOX_SEALED),
	FIELD(struct cell_spec, view.late),
	FIELD(struct cell_spec, identity.uid),
	FIELD(struct cell_spec, identity.gid),
	FIELD(struct cell_spec, identity.root),
	FIELD(struct cell_spec, identity.change),
	FIELD(struct cell_spec, identity.map_root),
	FIELD(struct cell_spec, limits.processes),
	FIELD(struct cell_spec, limits.file_size),
	FIELD(struct cell_spec, limits.open_files),
	FIELD(struct cell_spec, call_limits.memory),
	FIELD(struct cell_spec, call_limits.pids),
	FIELD(struct cell_spec, call_limits.file_size),
	FIELD(struct cell_spec, call_limits.tmp),
	FIELD(struct cell_spec, call_limits.free_space),
	FIELD(struct cell_spec, call_limits.quiet_s),
	FIELD(struct cell_spec, call_limits.read_bytes),
	FIELD(struct cell_spec, call_limits.write_bytes),
	FIELD(struct cell_spec, call_limits.watches),
	FIELD(struct cell_spec, grace_s),
	FIELD(struct cell_spec, review_log),
	FIELD(struct cell_spec, review_ms),
	FIELD(struct cell_spec, group_version),
	FIELD(struct cell_spec, doors[CGROUP_MEMORY]),
	FIELD(struct cell_spec, doors[CGROUP_PIDS]),
	FIELD(struct cell_spec, doors[CGROUP_TIME]),
	FIELD(struct cell_spec, doors[CGROUP_CPU]),
	FIELD(struct cell_spec, doors[CGROUP_IO]),
	FIELD(struct cell_spec, publishes),
	FIELD(struct cell_spec, brokers),
	{0},
};

static const struct view_entry entry_initial = {.fd = -1, .layer = -1};

static const struct field spec_fields[] = {
	FIELD_GROUP("fields", member_fields),
	FIELD_LIST(struct cell_spec, view.entries, view.count, "view", entry_fields,
		   .initial = &entry_initial, .min = 1, .max = INT32_MAX),
	FIELD_NUMBERS(struct cell_spec, listen, listen_count, "listen"),
	FIELD_NUMBERS(struct cell_spec, kept, kept_count, "kept"),
	FIELD_LIST(struct cell_spec, roots, root_count, "roots", root_fields),
	FIELD_TEXTS(struct cell_spec, writable.items, writable.count, "writable"),
	FIELD_TEXTS(struct cell_spec, blocked.items, blocked.count, "blocked"),
	FIELD_TEXTS(struct cell_spec, environment.items, environment.count, "environment"),
	{0},
};

/* The members of SPEC that hold its descriptors, in order; the caller frees the list. */
static int **descriptors_of(struct cell_spec *spec, size_t *count)
{
	int **list = memory_array(spec->view.count + CGROUP_FOLDERS + 2, sizeof(*list));

	*count = 0;
	for (size_t i = 0; i < CGROUP_FOLDERS; i++)
		list[(*count)++] = &spec->doors[i];
	list[(*count)++] = &spec->review_log;
	list[(*count)++] = &spec->view.late;
	for (size_t i = 0; i < spec->view.count; i++)
		list[(*count)++] = &spec->view.entries[i].fd;
	return list;
}

bool spec_print(struct cell_spec *spec, struct buf *out, int **fds, size_t *count)
{
	size_t members, at = 0;
	auto_free int **list = descriptors_of(spec, &members);
	auto_value struct value *object = NULL;

	*fds = memory_array(members, sizeof(**fds));
	for (size_t i = 0; i < members; i++) {
		if (*list[i] < 0)
			continue;
		(*fds)[at] = *list[i];
		*list[i] = (int)at++;
	}
	*count = at;
	object = fields_print(spec_fields, spec);
	for (size_t i = 0; i < members; i++) {
		if (*list[i] >= 0)
			*list[i] = (*fds)[*list[i]];
	}
	value_set(object, "guard", spec->guard != NULL ? guard_print(spec->guard) : NULL);
	return value_print(object, 0, out);
}

/* Put the descriptors into the members of SPEC that hold their places. */
static void descriptors_take(struct cell_spec *spec, int *fds, size_t count)
{
	size_t members;
	auto_free int **list = descriptors_of(spec, &members);

	for (size_t i = 0; i < members; i++) {
		const int place = *list[i];

		*list[i] = place >= 0 && (size_t)place < count ? fd_take(&fds[place]) : -1;
	}
}

/* GUARD is null in a specification without a guard, never missing. */
static bool guard_member_parse(struct cell_spec *spec, const struct value *guard,
			       struct err *err)
{
	if (guard != NULL && value_kind(guard) == VALUE_NULL)
		return true;
	spec->guard = guard_parse(guard, err);
	return spec->guard != NULL || err_while(err, "guard");
}

bool spec_parse(struct str text, int *fds, size_t count, struct cell_spec *spec,
		struct err *err)
{
	const bool fits = value_parse(text, 0, &spec->parsed, err) &&
			  fields_read(spec->parsed, spec_fields, spec, &spec->arena, err);

	descriptors_take(spec, fds, count);
	if (!fits || !guard_member_parse(spec, value_member(spec->parsed, "guard"), err))
		return err_while(err, "the cell's specification");
	spec->view_capacity = spec->view.count;
	return true;
}
