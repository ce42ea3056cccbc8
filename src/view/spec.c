/* spec: fills a specification; its lists grow in an arena. */

#include "view/spec.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/value.h"
#include "files/files.h"
#include "policy/network.h"
#include "sandbox/sandbox.h"
#include "sandbox/view.h"
#include "tool/call.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

void spec_init(struct cell_spec *spec)
{
	static const char *none[] = {NULL};

	*spec = (struct cell_spec){.mapping = {.fd = -1},
				   .workspace_tree = -1,
				   .home_lock = -1,
				   .temp_lock = -1,
				   .cache_lock = -1,
				   .leftovers = none,
				   .writable = none,
				   .made = none,
				   .blocked = none,
				   .closed = none,
				   .network = none,
				   .environment = none};
	arena_init(&spec->arena);
}

void spec_fini(struct cell_spec *spec)
{
	for (size_t i = 0; i < spec->view.count; i++)
		fd_close(&spec->view.entries[i].fd);
	sandbox_close_mapping(&spec->mapping);
	fd_close(&spec->workspace_tree);
	fd_close(&spec->home_lock);
	fd_close(&spec->temp_lock);
	fd_close(&spec->cache_lock);
	value_free(spec->guard);
	value_free(spec->parsed);
	arena_fini(&spec->arena);
	spec_init(spec);
}

bool spec_is_sealed(const struct cell_spec *spec)
{
	return spec->built >= SANDBOX_SEALED;
}

bool spec_is_blocked(const struct cell_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->blocked_count; i++) {
		if (path_within(path, spec->blocked[i]))
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
static void list_add(struct cell_spec *spec, const char ***list, size_t *count,
		     const char *text)
{
	const char **longer = arena_alloc(&spec->arena, (*count + 2) * sizeof(longer[0]));

	memcpy(longer, *list, *count * sizeof(longer[0]));
	longer[*count] = text;
	*list = longer;
	(*count)++;
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

void spec_add_writable(struct cell_spec *spec, const char *path)
{
	list_add(spec, &spec->writable, &spec->writable_count, keep(spec, path));
}

void spec_add_blocked(struct cell_spec *spec, const char *path)
{
	list_add(spec, &spec->blocked, &spec->blocked_count, keep(spec, path));
}

void spec_add_closed(struct cell_spec *spec, const char *path)
{
	list_add(spec, &spec->closed, &spec->closed_count, keep(spec, path));
}

void spec_add_network(struct cell_spec *spec, const char *entry)
{
	list_add(spec, &spec->network, &spec->network_count, keep(spec, entry));
}

void spec_add_made(struct cell_spec *spec, const char *path)
{
	list_add(spec, &spec->made, &spec->made_count, keep(spec, path));
}

void spec_add_leftover(struct cell_spec *spec, const char *path)
{
	list_add(spec, &spec->leftovers, &spec->leftover_count, keep(spec, path));
}

void spec_add_environment(struct cell_spec *spec, const char *format, ...)
{
	va_list arguments;
	struct buf text;

	buf_init(&text, 1 << 20);
	va_start(arguments, format);
	bool ok = buf_addv(&text, format, arguments);
	for (size_t i = 0; ok && i < spec->environment_count; i++)
		ok = strcmp(spec->environment[i], text.data) != 0;
	if (ok)
		list_add(spec, &spec->environment, &spec->environment_count,
			 keep(spec, text.data));
	va_end(arguments);
	buf_fini(&text);
}

void spec_set_environment(struct cell_spec *spec, const char *entry)
{
	size_t length = strcspn(entry, "=") + 1;

	for (size_t i = 0; i < spec->environment_count; i++) {
		if (strncmp(spec->environment[i], entry, length) == 0) {
			spec->environment[i] = keep(spec, entry);
			return;
		}
	}
	list_add(spec, &spec->environment, &spec->environment_count, keep(spec, entry));
}

static bool has_entry(const struct cell_spec *spec, enum view_kind kind, const char *path)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		if (spec->view.entries[i].kind == kind &&
		    strcmp(spec->view.entries[i].path, path) == 0)
			return true;
	}
	return false;
}

bool spec_is_layer(const struct cell_spec *spec, const char *path)
{
	return has_entry(spec, VIEW_OVERLAY, path);
}

bool spec_is_memory(const struct cell_spec *spec, const char *path)
{
	return has_entry(spec, VIEW_MEMORY, path);
}

void spec_set_writable(struct cell_spec *spec)
{
	struct buf list;

	buf_init(&list, SPEC_BYTES_MAX);
	(void)buf_adds(&list, SPEC_WRITABLE "=");
	const size_t begin = list.size;
	for (size_t i = 0; i < spec->root_count; i++) {
		const struct files_root *root = &spec->roots[i];

		if ((root->writable || spec_is_layer(spec, root->path)) &&
		    root->pattern == NULL && root->path != NULL &&
		    strchr(root->path, ':') == NULL)
			(void)buf_addf(&list, "%s%s", list.size > begin ? ":" : "",
				       root->path);
	}
	spec_set_environment(spec, list.data);
	buf_fini(&list);
}

void spec_widen(struct cell_spec *spec, const struct cell_spec *addition)
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
	for (size_t i = 0; i < addition->writable_count; i++)
		spec_add_writable(spec, addition->writable[i]);
	if (addition->guard != NULL) {
		value_free(spec->guard);
		spec->guard = value_ref(addition->guard);
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
		     entry->kind == VIEW_OVERLAY) &&
		    path_within(path, entry->path) &&
		    (deepest == NULL || strlen(entry->path) >= strlen(deepest->path)))
			deepest = entry;
	}
	return deepest != NULL ? deepest->kind : VIEW_TREE;
}

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
		struct value *item = value_new_object();
		value_set_text(item, "path", key);
		value_set_boolean(item, "writable",
				  root->writable && kind_at(spec, root->path) == VIEW_TREE);
		if (root->pattern != NULL)
			value_set_text(item, "pattern", root->pattern);
		value_append(roots, item);
	}
	return roots;
}

struct value *spec_rights(const struct cell_spec *spec)
{
	struct value *rights = value_new_object();
	struct value *hidden = value_new_array(), *closed = value_new_array();
	const struct value *files = value_member(spec->guard, "files");

	for (size_t i = 0; i < spec->blocked_count; i++)
		right_add(hidden, spec->blocked[i]);
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		if (entry->kind == VIEW_MASK)
			right_add(hidden, entry->path);
		else if (entry->kind == VIEW_PIN && !entry->writable)
			right_add(closed, entry->path);
	}
	for (size_t i = 0; i < value_count(files); i++)
		value_append(closed, value_ref(value_item(files, i)));
	value_set(rights, "roots", rights_roots(spec));
	value_set(rights, "hidden", hidden);
	value_set(rights, "closed", closed);
	return rights;
}

/* Prints and parses a specification, to pass it across an exec. */

static struct value *entry_value(const struct view_entry *entry)
{
	struct value *object = value_new_object();

	value_set_integer(object, "kind", entry->kind);
	value_set_text(object, "path", entry->path);
	if (entry->source != NULL)
		value_set_text(object, "source", entry->source);
	value_set_integer(object, "fd", entry->fd);
	value_set_boolean(object, "detached", entry->detached);
	value_set_boolean(object, "writable", entry->writable);
	value_set_boolean(object, "optional", entry->optional);
	value_set_boolean(object, "passing", entry->passing);
	value_set_integer(object, "mode", entry->mode);
	value_set_integer(object, "size", (int64_t)entry->size);
	return object;
}

static struct value *root_value(const struct files_root *root)
{
	struct value *object = value_new_object();

	value_set_text(object, "path", root->path);
	value_set_boolean(object, "writable", root->writable);
	if (root->pattern != NULL)
		value_set_text(object, "pattern", root->pattern);
	return object;
}

static struct value *limits_value(const struct call_limits *limits)
{
	struct value *object = value_new_object();

	value_set_integer(object, "memory", (int64_t)limits->memory);
	value_set_integer(object, "pids", (int64_t)limits->pids);
	value_set_integer(object, "file_size", (int64_t)limits->file_size);
	value_set_integer(object, "tmp", (int64_t)limits->tmp);
	value_set_integer(object, "free_space", (int64_t)limits->free_space);
	value_set_real(object, "quiet_s", limits->quiet_s);
	value_set_integer(object, "read_bytes", (int64_t)limits->read_bytes);
	value_set_integer(object, "write_bytes", (int64_t)limits->write_bytes);
	return object;
}

static void limits_parse(const struct value *object, struct call_limits *limits)
{
	limits->memory = (uint64_t)value_integer(value_member(object, "memory"));
	limits->pids = (uint64_t)value_integer(value_member(object, "pids"));
	limits->file_size = (uint64_t)value_integer(value_member(object, "file_size"));
	limits->tmp = (uint64_t)value_integer(value_member(object, "tmp"));
	limits->free_space = (uint64_t)value_integer(value_member(object, "free_space"));
	limits->quiet_s = value_number(value_member(object, "quiet_s"));
	limits->read_bytes = (uint64_t)value_integer(value_member(object, "read_bytes"));
	limits->write_bytes = (uint64_t)value_integer(value_member(object, "write_bytes"));
}

bool spec_print(const struct cell_spec *spec, struct buf *out)
{
	auto_value struct value *object = value_new_object();
	struct value *entries = value_new_array();
	struct value *roots = value_new_array();
	struct value *listen = value_new_array();

	for (size_t i = 0; i < spec->view.count; i++)
		value_append(entries, entry_value(&spec->view.entries[i]));
	for (size_t i = 0; i < spec->root_count; i++)
		value_append(roots, root_value(&spec->roots[i]));
	for (size_t i = 0; i < spec->listen_count; i++)
		value_append(listen, value_new_integer(spec->listen[i]));
	value_set(object, "view", entries);
	value_set(object, "listen", listen);
	value_set(object, "roots", roots);
	value_set(object, "writable", value_new_texts(spec->writable));
	value_set(object, "blocked", value_new_texts(spec->blocked));
	value_set(object, "environment", value_new_texts(spec->environment));
	value_set_text(object, "workspace", spec->workspace);
	value_set_text(object, "home", spec->home);
	value_set_integer(object, "level", spec->strength.level);
	value_set_boolean(object, "unfiltered", spec->strength.unfiltered);
	value_set_integer(object, "built", (int64_t)spec->built);
	if (spec->temp != NULL)
		value_set_text(object, "temp", spec->temp);
	value_set_integer(object, "uid", spec->identity.uid);
	value_set_integer(object, "gid", spec->identity.gid);
	value_set_boolean(object, "change", spec->identity.change);
	value_set_boolean(object, "map_root", spec->identity.map_root);
	value_set_integer(object, "cell_processes", (int64_t)spec->limits.processes);
	value_set_integer(object, "file_size", (int64_t)spec->limits.file_size);
	value_set_integer(object, "open_files", (int64_t)spec->limits.open_files);
	value_set(object, "call_limits", limits_value(&spec->call_limits));
	value_set_real(object, "grace_s", spec->grace_s);
	value_set_text(object, "agent", spec->agent);
	if (spec->guard != NULL)
		value_set(object, "guard", value_ref(spec->guard));
	return value_print(object, 0, out);
}

static const char *member_text(struct cell_spec *spec, const struct value *object,
			       const char *key)
{
	const char *text = value_text(value_member(object, key));

	return text != NULL ? arena_copy(&spec->arena, str_of(text)) : NULL;
}

static void add_environment(struct cell_spec *spec, const char *entry)
{
	spec_add_environment(spec, "%s", entry);
}

static void texts_parse(struct cell_spec *spec, const struct value *list,
			void (*add)(struct cell_spec *spec, const char *text))
{
	for (size_t i = 0; i < value_count(list); i++)
		add(spec, value_text(value_item(list, i)));
}

static void entry_parse(struct cell_spec *spec, const struct value *object)
{
	struct view_entry *entry =
		spec_add_entry(spec,
			       (enum view_kind)value_integer(value_member(object, "kind")),
			       value_text(value_member(object, "path")),
			       value_text(value_member(object, "source")));

	entry->fd = (int)value_integer(value_member(object, "fd"));
	entry->detached = value_is_true(value_member(object, "detached"));
	entry->writable = value_is_true(value_member(object, "writable"));
	entry->optional = value_is_true(value_member(object, "optional"));
	entry->passing = value_is_true(value_member(object, "passing"));
	entry->mode = (mode_t)value_integer(value_member(object, "mode"));
	entry->size = (uint64_t)value_integer(value_member(object, "size"));
}

static void listen_parse(struct cell_spec *spec, const struct value *list)
{
	const size_t most = sizeof(spec->listen) / sizeof(spec->listen[0]);

	for (size_t i = 0; i < value_count(list) && i < most; i++)
		spec->listen[spec->listen_count++] =
			(uint16_t)value_integer(value_item(list, i));
}

bool spec_parse(struct str text, struct cell_spec *spec, struct err *err)
{
	auto_value struct value *object = NULL;

	if (!value_parse(text, 0, &object, err))
		return err_while(err, "the cell's specification");
	const struct value *entries = value_member(object, "view");
	const struct value *roots = value_member(object, "roots");
	for (size_t i = 0; i < value_count(entries); i++)
		entry_parse(spec, value_item(entries, i));
	for (size_t i = 0; i < value_count(roots); i++) {
		const struct value *root = value_item(roots, i);
		spec_add_root(spec, value_text(value_member(root, "path")),
			      value_is_true(value_member(root, "writable")),
			      value_text(value_member(root, "pattern")));
	}
	texts_parse(spec, value_member(object, "writable"), spec_add_writable);
	texts_parse(spec, value_member(object, "blocked"), spec_add_blocked);
	texts_parse(spec, value_member(object, "environment"), add_environment);
	listen_parse(spec, value_member(object, "listen"));
	spec->workspace = member_text(spec, object, "workspace");
	spec->home = member_text(spec, object, "home");
	spec->strength.level =
		(enum sandbox_level)value_integer(value_member(object, "level"));
	spec->strength.unfiltered = value_is_true(value_member(object, "unfiltered"));
	spec->built = (enum sandbox_level)value_integer(value_member(object, "built"));
	if (value_member(object, "temp") != NULL)
		spec->temp = member_text(spec, object, "temp");
	spec->identity.uid = (uid_t)value_integer(value_member(object, "uid"));
	spec->identity.gid = (gid_t)value_integer(value_member(object, "gid"));
	spec->identity.change = value_is_true(value_member(object, "change"));
	spec->identity.map_root = value_is_true(value_member(object, "map_root"));
	spec->limits.processes =
		(uint64_t)value_integer(value_member(object, "cell_processes"));
	spec->limits.file_size = (uint64_t)value_integer(value_member(object, "file_size"));
	spec->limits.open_files =
		(uint64_t)value_integer(value_member(object, "open_files"));
	limits_parse(value_member(object, "call_limits"), &spec->call_limits);
	spec->grace_s = value_number(value_member(object, "grace_s"));
	spec->agent = member_text(spec, object, "agent");
	if (value_kind(value_member(object, "guard")) == VALUE_OBJECT)
		spec->guard = value_ref(value_member(object, "guard"));
	if (spec->view.count == 0 || spec->workspace == NULL)
		return err_set(err, EINVAL, "the cell's specification is incomplete");
	spec->parsed = value_ref(object);
	return true;
}
