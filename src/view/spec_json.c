/* spec_json: prints and parses a specification, to pass it across an exec. */
#include "base/value.h"
#include "view/spec.h"

#include <errno.h>

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
	value_set_integer(object, "level", spec->level);
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
	spec->level = (int)value_integer(value_member(object, "level"));
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
