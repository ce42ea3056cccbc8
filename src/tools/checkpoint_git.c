/* checkpoint_git: what lies in the git folder of the workspace. */
#include "base/fd.h"
#include "tools/checkpoint_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	GIT_DEPTH = 24,        /* of folders in a git folder: refs have slashes */
	GIT_ROWS_MAX = 200000, /* refs and their logs; objects are counted apart */
	OBJECTS_MAX = 200000,
	GIT_LINKED_BYTES = 41, /* "ab/" and 38 digits */
};

#define OBJECTS_PATH ".git/objects/"

const char *const checkpoint_unlisted[] = {"objects", "hooks", "modules", "lfs", NULL};

static bool is_left_out(const char *name, unsigned depth)
{
	struct str text = str_of(name);

	for (size_t i = 0; depth == 0 && checkpoint_unlisted[i] != NULL; i++) {
		if (strcmp(name, checkpoint_unlisted[i]) == 0)
			return true;
	}
	return str_ends(text, STR(".lock")) || strcmp(name, ".") == 0 ||
	       strcmp(name, "..") == 0;
}

static bool look_below(struct checkpoint *checkpoint, int folder, const char *path,
		       unsigned depth, size_t *rows);

static bool look_name(struct checkpoint *checkpoint, int folder, const char *path,
		      const char *name, unsigned depth, size_t *rows)
{
	char whole[PATH_MAX];
	struct undo_state state;
	struct stat st;
	int size = snprintf(whole, sizeof(whole), "%s/%s", path, name);

	if (size >= (int)sizeof(whole) ||
	    fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	undo_state_of(&st, &state);
	if (state.kind == UNDO_ABSENT)
		return true;
	if (++*rows > GIT_ROWS_MAX ||
	    !undo_list_add(&checkpoint->now, (struct str){whole, (size_t)size}, &state))
		return false;
	if (state.kind != UNDO_FOLDER || depth >= GIT_DEPTH)
		return true;
	auto_close int below = fd_open_beneath(folder, name, O_RDONLY | O_DIRECTORY);
	return below < 0 || look_below(checkpoint, below, whole, depth + 1, rows);
}

static bool look_below(struct checkpoint *checkpoint, int folder, const char *path,
		       unsigned depth, size_t *rows)
{
	int fd = fcntl(folder, F_DUPFD_CLOEXEC, 0);
	DIR *names = fd >= 0 ? fdopendir(fd) : NULL;
	bool fine = true;

	if (names == NULL) {
		fd_close(&fd);
		return true;
	}
	for (const struct dirent *at = readdir(names); fine && at != NULL;
	     at = readdir(names)) {
		if (!is_left_out(at->d_name, depth))
			fine = look_name(checkpoint, folder, path, at->d_name, depth, rows);
	}
	(void)closedir(names);
	return fine;
}

bool checkpoint_is_object(struct str path, const char **name)
{
	if (!str_starts(path, STR(OBJECTS_PATH)))
		return false;
	*name = path.data + strlen(OBJECTS_PATH);
	return true;
}

/* The rows that the old list has below PREFIX. */
static bool copy_old(struct checkpoint *checkpoint, struct str prefix)
{
	const struct undo_list *old = &checkpoint->old;

	for (size_t i = undo_list_at(old, prefix); i < old->count; i++) {
		if (!str_starts(old->rows[i].path, prefix))
			break;
		if (!undo_list_add(&checkpoint->now, old->rows[i].path, &old->rows[i].state))
			return false;
	}
	return true;
}

/* Objects never change: only the folder's own times tell whether to read its names. */
static bool look_objects_in(struct checkpoint *checkpoint, int objects, const char *name,
			    size_t *count)
{
	char prefix[64], path[PATH_MAX];
	struct undo_state state;
	struct stat st;
	bool fine = true;
	int size = snprintf(prefix, sizeof(prefix), OBJECTS_PATH "%s/", name);
	struct str folder_path = {prefix, (size_t)size - 1};

	auto_close int folder = fd_open_beneath(objects, name, O_RDONLY | O_DIRECTORY);
	if (folder < 0 || fstat(folder, &st) < 0)
		return true;
	undo_state_of(&st, &state);
	const struct undo_row *old = undo_list_find(&checkpoint->old, folder_path);
	bool same = old != NULL && old->state.inode == state.inode &&
		    old->state.ctime_ns == state.ctime_ns &&
		    old->state.mtime_ns == state.mtime_ns;
	if (!undo_list_add(&checkpoint->now, folder_path, &state))
		return false;
	if (same)
		return copy_old(checkpoint, (struct str){prefix, (size_t)size});
	DIR *names = fdopendir(fcntl(folder, F_DUPFD_CLOEXEC, 0));
	if (names == NULL)
		return true;
	for (const struct dirent *at = readdir(names); fine && at != NULL;
	     at = readdir(names)) {
		size_t length = strlen(at->d_name);
		/* Not what is being written, nor marks that git leaves. */
		if (at->d_name[0] == '.' || strncmp(at->d_name, "tmp_", 4) == 0 ||
		    str_ends(str_of(at->d_name), STR(".keep")) ||
		    (strcmp(name, "pack") != 0 && length + 3 < GIT_LINKED_BYTES) ||
		    fstatat(folder, at->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		undo_state_of(&st, &state);
		size = snprintf(path, sizeof(path), "%s%s", prefix, at->d_name);
		fine = ++*count <= OBJECTS_MAX &&
		       undo_list_add(&checkpoint->now, (struct str){path, (size_t)size},
				     &state);
	}
	(void)closedir(names);
	return fine;
}

static bool look_objects(struct checkpoint *checkpoint, int git)
{
	auto_close int objects = fd_open_beneath(git, "objects", O_RDONLY | O_DIRECTORY);
	struct undo_state state;
	size_t count = 0;
	char name[4];
	struct stat st;

	if (objects < 0 || fstat(objects, &st) < 0)
		return true;
	undo_state_of(&st, &state);
	if (!undo_list_add(&checkpoint->now, STR(".git/objects"), &state))
		return false;
	for (unsigned i = 0; i < 256; i++) {
		(void)snprintf(name, sizeof(name), "%02x", i);
		if (!look_objects_in(checkpoint, objects, name, &count))
			return false;
	}
	if (!look_objects_in(checkpoint, objects, "pack", &count))
		return false;
	/* Where else objects lie. */
	auto_close int info = fd_open_beneath(objects, "info", O_RDONLY | O_DIRECTORY);
	return info < 0 ||
	       look_name(checkpoint, info, ".git/objects/info", "alternates", 1, &count);
}

bool checkpoint_look_git(struct checkpoint *checkpoint, int git)
{
	struct undo_state state;
	struct stat st;
	size_t rows = 0;

	if (fstat(git, &st) < 0)
		return true;
	undo_state_of(&st, &state);
	return undo_list_add(&checkpoint->now, STR(".git"), &state) &&
	       look_below(checkpoint, git, ".git", 0, &rows) &&
	       look_objects(checkpoint, git);
}
