/*
 * undo_place: in a worker, what a path of the workspace holds, and making it hold what it held
 * before. No symlink is followed on the way, the policy's rights are asked again, and a file is
 * old or new at every moment.
 */
#pragma once
#include "base/err.h"
#include "runtime/files.h"
#include "runtime/undo_log.h"

#include <stdbool.h>

/* The state of PATH (as in a log) with its content's digest; ABSENT when nothing is there. */
bool undo_place_look(struct files *files, const char *path, struct undo_state *state,
		     struct err *err);

/*
 * Make PATH what TARGET says; a content is read of the log FROM. NOW is what undo_place_look
 * said: when that is no longer so nothing is changed (EAGAIN). What PATH holds now goes into
 * LOG first. A folder that is to go and is not empty stays, and *LEFT is set.
 */
bool undo_place_put(struct files *files, const char *path, const struct undo_state *now,
		    const struct undo_state *target, int from, struct undo_log *log,
		    bool *left, struct err *err);
