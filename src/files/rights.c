/* rights: reads the rights of a session, and checks paths against them. */
#include "files/rights.h"

#include "base/memory.h"
#include "base/path.h"
#include "files/files.h"
#include "policy/autoexec.h"

#include <stdlib.h>
#include <string.h>

struct paths {
	char **items;
	size_t count;
};

struct rights {
	struct files files;   /* only its roots are used */
	struct paths hidden;  /* may not even be read */
	struct paths closed;  /* may not be written */
	struct paths granted; /* folders in which a person let the session write */
	bool is_sound;
};

/* False when an item of LIST is no path. */
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

	rights->is_sound =
		roots_read(value_member(value, "roots"), &rights->files) &&
		paths_read(value_member(value, "hidden"), &rights->hidden) &&
		paths_read(value_member(value, "closed"), &rights->closed) &&
		paths_read(value_member(value, RIGHTS_GRANTED), &rights->granted);
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
	paths_free(&rights->granted);
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

	/* No file tool writes the files of git, wherever they lie. */
	if (rights->is_sound && !path_names_git(path)) {
		for (size_t i = 0; i < rights->granted.count; i++) {
			if (path_within(path, rights->granted.items[i]) &&
			    strcmp(path, rights->granted.items[i]) != 0)
				return true;
		}
	}
	/*
	 * Files in a root may be written, but the root itself is never moved or removed.
	 */
	for (size_t i = 0; i < rights->files.root_count; i++) {
		if (strcmp(rights->files.roots[i].path, path) == 0)
			return false;
	}
	return rights_may_read(rights, path) && files_is_writable(&rights->files, path) &&
	       !is_among(&rights->closed, path) && root != NULL &&
	       autoexec_protects(root->path, path_relative(path, root->path)) == NULL;
}
