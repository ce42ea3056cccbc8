/*
 * checkpoint_made: of a repository that the step made itself, what no list has: git's objects,
 * hooks and modules. With them the whole of it can be taken away again, and nothing else.
 */
#include "base/fd.h"
#include "tools/checkpoint_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MADE_DEPTH = 48 }; /* of folders: modules hold repositories that hold modules */

static bool hash_entry(int folder, const char *name, struct undo_state *state)
{
	char target[PATH_MAX];
	ssize_t size;

	if (state->kind == UNDO_FILE) {
		auto_close int file = fd_open_beneath(folder, name, O_RDONLY);
		return file >= 0 && undo_state_hash(file, state, NULL);
	}
	if (state->kind == UNDO_LINK) {
		size = readlinkat(folder, name, target, sizeof(target));
		if (size >= 0)
			undo_state_hash_text((struct str){target, (size_t)size}, state);
		return size >= 0;
	}
	return state->kind == UNDO_FOLDER;
}

static bool tell_folder(struct checkpoint *checkpoint, int folder, struct str path,
			unsigned depth, struct err *err);

/*
 * An entry that is gone meanwhile, or closed to us, is not reported: undo finds it there,
 * and stops.
 */
static bool tell_name(struct checkpoint *checkpoint, int folder, struct str above,
		      const char *name, unsigned depth, struct err *err)
{
	char path[PATH_MAX];
	struct undo_state state;
	struct stat st;
	const int size =
		snprintf(path, sizeof(path), "%.*s/%s", (int)above.size, above.data, name);
	const struct str whole = {path, (size_t)size};

	if (call_stopped(checkpoint->call))
		return err_set(err, ETIMEDOUT, "there was no time to look at it all");
	if (size >= (int)sizeof(path) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	undo_state_of(&st, &state);
	if (!hash_entry(folder, name, &state))
		return true;
	if (!undo_log_change(&checkpoint->log, whole, &undo_absent, &state, err))
		return false;
	if (state.kind != UNDO_FOLDER || depth >= MADE_DEPTH)
		return true;
	auto_close int below = fd_open_beneath(folder, name, O_RDONLY | O_DIRECTORY);
	return below < 0 || tell_folder(checkpoint, below, whole, depth + 1, err);
}

static bool tell_folder(struct checkpoint *checkpoint, int folder, struct str path,
			unsigned depth, struct err *err)
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
		if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0)
			fine = tell_name(checkpoint, folder, path, at->d_name, depth, err);
	}
	(void)closedir(names);
	return fine;
}

bool checkpoint_tell_made(struct checkpoint *checkpoint, struct err *err)
{
	const struct undo_row *row = undo_list_find(&checkpoint->now, STR(UNDO_GIT));
	bool fine = true;

	if (!checkpoint->is_step || row == NULL || row->state.kind != UNDO_FOLDER ||
	    undo_list_find(&checkpoint->old, STR(UNDO_GIT)) != NULL ||
	    checkpoint_passes(checkpoint, STR(UNDO_GIT)))
		return true;
	auto_close int git =
		fd_open_beneath(checkpoint->start.fd, UNDO_GIT, O_RDONLY | O_DIRECTORY);
	for (size_t i = 0; fine && git >= 0 && checkpoint_unlisted[i] != NULL; i++)
		fine = tell_name(checkpoint, git, STR(UNDO_GIT), checkpoint_unlisted[i],
				 0, err);
	return fine;
}
