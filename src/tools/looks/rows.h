/*
 * rows: the rows of a look (checkpoint.h) beside those of the list made last. A row that
 * has the times of its row before stays as it is. Of any other the content is kept, unless
 * the list's store or git has it already, and in a step the difference goes into the log.
 *
 * A path that rules ignore has a row that says only this. The list has no rows of what
 * lies in an ignored folder, unless git tracks it. A path that was ignored at the look
 * before, or lay in an ignored folder then, and is not ignored now has come into view. It
 * may be a person's file, of which nothing was kept, so it is no part of the step,
 * whatever the step did to it, and undo never removes it. A file that the step has made
 * ignored is compared with its row once more, so that a change of it is part of the step.
 *
 * A file that changes in the same ticks of the kernel's clock in which it is looked at
 * keeps no times, so the next look compares its content. Contents are kept up to a number
 * and a size; the details of the look count the files beyond these.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "files/record.h"
#include "tools/looks/checkpoint.h"
#include "undo/list.h"

#include <stdbool.h>
#include <string.h>

/* Rows between two questions whether the call must stop. */
enum { ROWS_STOP_EVERY = 256 };

/* Do A and B describe a file that nobody has touched in between? */
static inline bool rows_same_times(const struct undo_state *a, const struct undo_state *b)
{
	return a->inode != 0 && a->inode == b->inode && a->kind == b->kind &&
	       a->size == b->size && a->mode == b->mode && a->mtime_ns == b->mtime_ns &&
	       a->ctime_ns == b->ctime_ns;
}

/* The state of PATH in the list made last, also that it was ignored; NULL: not there. */
const struct undo_state *rows_before(const struct checkpoint *checkpoint, struct str path);

/* The same; NULL: it was not there, or was ignored. */
static inline const struct undo_state *rows_state_before(const struct checkpoint *checkpoint,
							 struct str path)
{
	const struct undo_state *state = rows_before(checkpoint, path);

	return state != NULL && state->kind != UNDO_IGNORED ? state : NULL;
}

/*
 * Call EACH with the rows of that list whose paths begin with PREFIX, in no particular
 * order. False: EACH has returned false.
 */
bool rows_each_before(const struct checkpoint *checkpoint, struct str prefix,
		      bool (*each)(void *context, const struct undo_row *row),
		      void *context);

/* Was PATH, or a folder above it, ignored when that list was made? */
static inline bool rows_was_ignored(const struct checkpoint *checkpoint, struct str path)
{
	for (size_t end = 1; end <= path.size; end++) {
		if (end < path.size && path.data[end] != '/')
			continue;
		const struct undo_state *state =
			rows_before(checkpoint, str_part(path, 0, end));
		if (state != NULL && state->kind == UNDO_IGNORED)
			return true;
	}
	return false;
}

/*
 * Is PATH in a layer that the cell throws away? A change there is no change of the
 * workspace.
 */
bool rows_is_passing(const struct checkpoint *checkpoint, struct str path);

/*
 * Is the content of OLD lost? Git drops an object some time after the index, where the
 * file is TRACKED (NULL: nowhere), names it no more; and all of them with a repository.
 */
static inline bool rows_is_lost(const struct checkpoint *checkpoint,
				const struct tracked *tracked, const struct undo_state *old)
{
	return old->source == UNDO_IN_GIT &&
	       (!checkpoint->has_git || tracked == NULL ||
		old->object_size != checkpoint->tracked.object_size ||
		memcmp(old->object, tracked->object, old->object_size) != 0);
}

/*
 * Keep the rows of `now`, and tell how they differ from `before`. GONE is NULL: `now` is
 * the whole workspace. Else `now` has the rows that were told, and GONE the paths that may
 * be gone. The rows that differ are then added to NEWS; those of GONE as absent. False
 * without a text in ERR: NEWS is full.
 */
bool rows_keep(struct checkpoint *checkpoint, const struct undo_list *gone,
	       struct undo_list *news, struct err *err);

/* Note that the ignored file PATH is gone. Nothing keeps what it held. */
void rows_lost(struct checkpoint *checkpoint, struct str path);
