/* pending_rights: see pending_rights.h. */
#include "runtime/pending_rights.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/path.h"
#include "git/git_scan.h"
#include "runtime/files_inside.h"
#include "runtime/spec.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void add_path(struct value *list, const char *path)
{
	auto_free char *key = git_scan_key(path);

	value_append(list, value_new_text(key));
}

struct value *pending_rights_of(const struct cell_spec *spec)
{
	struct value *rights = value_new_object(), *roots = value_new_array();
	struct value *closed = value_new_array();
	const struct value *files = value_member(spec->guard, "files");

	for (size_t i = 0; i < spec->root_count; i++) {
		const struct files_root *root = &spec->roots[i];
		auto_free char *key = git_scan_key(root->path);
		struct value *item = value_new_object();

		value_set_text(item, "path", key);
		value_set_boolean(item, "writable", root->writable);
		if (root->pattern != NULL)
			value_set_text(item, "pattern", root->pattern);
		value_append(roots, item);
	}
	for (size_t i = 0; i < spec->blocked_count; i++)
		add_path(closed, spec->blocked[i]);
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		if (entry->kind == VIEW_MASK ||
		    (entry->kind == VIEW_PIN && !entry->writable))
			add_path(closed, entry->path);
	}
	for (size_t i = 0; i < value_count(files); i++)
		value_append(closed, value_ref(value_item(files, i)));
	value_set(rights, "roots", roots);
	value_set(rights, "closed", closed);
	return rights;
}

static bool could_write(const struct value *rights, const char *path)
{
	const struct value *roots = value_member(rights, "roots");
	const struct value *closed = value_member(rights, "closed");
	const size_t count = value_count(roots);
	auto_free struct files_held *held = memory_array(count + 1, sizeof(*held));
	const struct files files = {.roots = held, .root_count = count};
	bool could = true;

	for (size_t i = 0; i < count; i++) {
		const struct value *root = value_item(roots, i);
		held[i] = (struct files_held){
			.fd = -1,
			.path = git_scan_path(value_text(value_member(root, "path"))),
			.pattern = memory_copy(value_text(value_member(root, "pattern"))),
			.writable = value_is_true(value_member(root, "writable")),
		};
		/* A root may be written into; it is never moved or removed itself. */
		could = could && held[i].path != NULL && strcmp(held[i].path, path) != 0;
	}
	could = could && files_is_writable(&files, path);
	for (size_t i = 0; could && i < value_count(closed); i++) {
		auto_free char *at = git_scan_path(value_text(value_item(closed, i)));
		could = at != NULL && !path_within(path, at);
	}
	for (size_t i = 0; i < count; i++) {
		free(held[i].path);
		free(held[i].pattern);
	}
	return could;
}

bool pending_rights_allow(const struct value *rights, const struct value *row)
{
	auto_free char *folder = git_scan_path(value_text(value_member(row, "folder")));
	auto_free char *name = git_scan_path(value_text(value_member(row, "name")));
	struct buf path;
	bool allowed;

	if (folder == NULL || name == NULL || folder[0] != '/')
		return false;
	buf_init(&path, PATH_MAX);
	allowed = path_normal("/", folder, &path) && strcmp(path.data, folder) == 0 &&
		  buf_addf(&path, "%s%s", folder[1] != '\0' ? "/" : "", name) &&
		  could_write(rights, path.data);
	buf_fini(&path);
	return allowed;
}
