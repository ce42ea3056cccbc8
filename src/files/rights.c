/* rights: reads the rights of a session, and checks paths against them. */
#include "files/rights.h"

#include "base/json/fields.h"
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

static const struct field root_fields[] = {
	FIELD_PATH(struct files_held, path, "path"),
	FIELD(struct files_held, pattern, .optional = true),
	FIELD(struct files_held, writable),
	{0},
};

static const struct files_held root_initial = {.fd = -1};

static const struct field rights_fields[] = {
	FIELD_LIST(struct rights, files.roots, files.root_count, "roots", root_fields,
		   .initial = &root_initial, .optional = true),
	FIELD_PATHS(struct rights, hidden.items, hidden.count, "hidden", .optional = true),
	FIELD_PATHS(struct rights, closed.items, closed.count, "closed", .optional = true),
	FIELD_PATHS(struct rights, granted.items, granted.count, RIGHTS_GRANTED,
		    .optional = true),
	{0},
};

struct rights *rights_read(const struct value *value)
{
	struct rights *rights = memory_alloc(sizeof(*rights));

	/* Only rights that a person has granted have no roots, and so no limits of these. */
	rights->is_sound = fields_read(value, rights_fields, rights, NULL, NULL) &&
			   (rights->files.root_count == 0 ||
			    (rights->hidden.items != NULL && rights->closed.items != NULL));
	return rights;
}

void rights_free(struct rights *rights)
{
	if (rights != NULL)
		fields_free(rights_fields, rights);
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
	if (!rights->is_sound)
		return false;
	const struct files_held *root = files_root_of(&rights->files, path);

	/* No file tool writes the files of git, wherever they lie. */
	if (!path_names_git(path)) {
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
