/* rights: see rights.h. */
#include "runtime/rights.h"

#include "base/memory.h"
#include "base/path.h"
#include "git/autoexec.h"
#include "runtime/files_inside.h"
#include "runtime/spec.h"

#include <stdlib.h>
#include <string.h>

struct paths {
	char **items;
	size_t count;
};

struct rights {
	struct files files;  /* its roots alone */
	struct paths hidden; /* not even to be read */
	struct paths closed; /* not to be written */
	bool is_sound;
};

static void add_path(struct value *list, const char *path)
{
	auto_free char *key = path_key(path);

	value_append(list, value_new_text(key));
}

/* Whose PATH it is in the view: the host's own, a layer over that, or memory of the cell's. */
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

static struct value *roots_of(const struct cell_spec *spec)
{
	struct value *roots = value_new_array();

	for (size_t i = 0; i < spec->root_count; i++) {
		const struct files_root *root = &spec->roots[i];
		auto_free char *key = path_key(root->path);

		/* It ends with its session, and has another name in each. */
		if (spec->temp != NULL && path_within(root->path, spec->temp))
			continue;
		/* The same path may be a real one in another session. */
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

struct value *rights_of(const struct cell_spec *spec)
{
	struct value *rights = value_new_object();
	struct value *hidden = value_new_array(), *closed = value_new_array();
	const struct value *files = value_member(spec->guard, "files");

	for (size_t i = 0; i < spec->blocked_count; i++)
		add_path(hidden, spec->blocked[i]);
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		if (entry->kind == VIEW_MASK)
			add_path(hidden, entry->path);
		else if (entry->kind == VIEW_PIN && !entry->writable)
			add_path(closed, entry->path);
	}
	for (size_t i = 0; i < value_count(files); i++)
		value_append(closed, value_ref(value_item(files, i)));
	value_set(rights, "roots", roots_of(spec));
	value_set(rights, "hidden", hidden);
	value_set(rights, "closed", closed);
	return rights;
}

/* False: one of them is no path. */
static bool paths_read(const struct value *list, struct paths *paths)
{
	paths->items = memory_array(value_count(list) + 1, sizeof(*paths->items));
	for (size_t i = 0; i < value_count(list); i++) {
		char *path = path_of_key(value_text(value_item(list, i)));
		if (path == NULL)
			return false;
		paths->items[paths->count++] = path;
	}
	return true;
}

static bool roots_read(const struct value *roots, struct files *files)
{
	const size_t count = value_count(roots);

	files->roots = memory_array(count + 1, sizeof(*files->roots));
	for (size_t i = 0; i < count; i++) {
		const struct value *root = value_item(roots, i);
		char *path = path_of_key(value_text(value_member(root, "path")));
		if (path == NULL)
			return false;
		files->roots[files->root_count++] = (struct files_held){
			.fd = -1,
			.path = path,
			.pattern = memory_copy(value_text(value_member(root, "pattern"))),
			.writable = value_is_true(value_member(root, "writable")),
		};
	}
	return true;
}

struct rights *rights_read(const struct value *value)
{
	struct rights *rights = memory_alloc(sizeof(*rights));

	rights->is_sound = roots_read(value_member(value, "roots"), &rights->files) &&
			   paths_read(value_member(value, "hidden"), &rights->hidden) &&
			   paths_read(value_member(value, "closed"), &rights->closed);
	return rights;
}

static void paths_free(struct paths *paths)
{
	for (size_t i = 0; i < paths->count; i++)
		free(paths->items[i]);
	free(paths->items);
}

void rights_free(struct rights *rights)
{
	if (rights == NULL)
		return;
	for (size_t i = 0; i < rights->files.root_count; i++) {
		free(rights->files.roots[i].path);
		free(rights->files.roots[i].pattern);
	}
	free(rights->files.roots);
	paths_free(&rights->hidden);
	paths_free(&rights->closed);
	free(rights);
}

static bool is_among(const struct paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->count; i++) {
		if (path_within(path, paths->items[i]))
			return true;
	}
	return false;
}

bool rights_may_read(const struct rights *rights, const char *path)
{
	return rights->is_sound && files_root_of(&rights->files, path) != NULL &&
	       !is_among(&rights->hidden, path);
}

bool rights_may_write(const struct rights *rights, const char *path)
{
	const struct files_held *root = files_root_of(&rights->files, path);

	/* A root may be written into; it is never moved or removed itself. */
	for (size_t i = 0; i < rights->files.root_count; i++) {
		if (strcmp(rights->files.roots[i].path, path) == 0)
			return false;
	}
	return rights_may_read(rights, path) && files_is_writable(&rights->files, path) &&
	       !is_among(&rights->closed, path) && root != NULL &&
	       autoexec_protects(root->path, path_relative(path, root->path)) == NULL;
}
