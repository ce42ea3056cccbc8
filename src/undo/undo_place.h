/*
 * undo_place: in a worker, what a path of the workspace holds, and making it hold what it held
 * before. No symlink is followed on the way, the policy's rights are asked again, and a file is
 * old or new at every moment.
 */
#pragma once
#include "base/err.h"
#include "files/files.h"
#include "files/undo_log.h"

#include <stdbool.h>

/* The state of PATH (as in a log) with its content's digest; ABSENT when nothing is there. */
bool undo_place_look(struct files *files, const char *path, struct undo_state *state,
		     struct err *err);

/*
 * Many paths at a time: PLACES read contents of the log FROM, and what a path holds goes into LOG
 * before it is replaced. All of it is borrowed. Files are written in batches: those that
 * undo_places_put has written have no name until the batch is full or undo_places_settle is
 * called, and none of them is half there at any moment.
 */
struct undo_places;
struct undo_places *undo_places_new(struct files *files, int from, struct undo_log *log);
/* NULL is fine. Files that have no name yet are lost. */
void undo_places_free(struct undo_places *places);

/* As undo_place_look. */
bool undo_places_look(struct undo_places *places, const char *path,
		      struct undo_state *state, struct err *err);

/*
 * Make PATH, which outlives PLACES, what TARGET says. NOW is what undo_places_look said: when that
 * is no longer so nothing is changed (EAGAIN). A folder that is to go and is not empty stays, and
 * *LEFT is set. An error may be that of an earlier path of the batch.
 */
bool undo_places_put(struct undo_places *places, const char *path,
		     const struct undo_state *now, const struct undo_state *target,
		     bool *left, struct err *err);
/* Give each file that waits its name. */
bool undo_places_settle(struct undo_places *places, struct err *err);
