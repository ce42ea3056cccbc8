/*
 * place: used in a worker to look at the state of a path in the workspace, and to
 * restore an earlier one. No symlink on the way is followed, the policy's rights are
 * checked again, and a file is old or new at every moment.
 */
#pragma once

#include "base/err.h"
#include "files/files.h"
#include "files/record.h"

#include <stdbool.h>
#include <sys/types.h>

struct undo_places;

/*
 * Copy the data of the file FROM, which has SIZE bytes, to the empty file TO. They share blocks
 * where the file system can do that, and holes stay holes. False with errno.
 */
bool undo_place_copy_data(int to, int from, off_t size);

/*
 * The state of PATH (as in a log) with its content's digest; ABSENT when nothing is
 * there.
 */
bool undo_place_look(struct files *files, const char *path, struct undo_state *state,
		     struct err *err);
struct undo_places *undo_places_new(struct files *files, int from, struct undo_log *log);
/* NULL is fine. Files that have no name yet are lost. */
void undo_places_free(struct undo_places *places);

/*
 * As undo_place_look. A file that its owner may not read is EACCES; STATE then has all of
 * it except the content's digest. TEXT (or NULL) gets the content of a file that has room
 * there, and is empty otherwise.
 */
bool undo_places_look(struct undo_places *places, const char *path,
		      struct undo_state *state, struct buf *text, struct err *err);
/*
 * As undo_places_look, for such a file: its owner may read it for the moment in which it is
 * opened.
 */
bool undo_places_read(struct undo_places *places, const char *path,
		      struct undo_state *state, struct err *err);

/*
 * To be asked before anything is written. Why PATH, which is in the state NOW, cannot be
 * brought into the state TARGET, although nobody has changed it; NULL: it can.
 */
const char *undo_places_refuse(struct undo_places *places, const char *path,
			       const struct undo_state *now,
			       const struct undo_state *target);
/*
 * The length of the part of PATH that should be a folder, but is a file or a link; 0: there
 * is no such part.
 */
size_t undo_places_blocked(struct undo_places *places, const char *path);

/*
 * Bring PATH (which outlives PLACES) into the state TARGET. NOW is the state from
 * undo_places_look; if it has changed since, PATH is left as it is (EAGAIN). A folder
 * that is to be removed but is not empty stays, and *LEFT is set. The error may belong to
 * an earlier path of the batch.
 */
bool undo_places_put(struct undo_places *places, const char *path,
		     const struct undo_state *now, const struct undo_state *target,
		     bool *left, struct err *err);
/* A content that comes from no log; all of it is borrowed. */
struct undo_content {
	/* what a file holds, or the target of a link, which ends in NUL. No data: FILE has it */
	struct str text;
	/*
	 * open, and was so when the target was made of it: content and time of the last change
	 * come from there. Blocks are shared and holes kept where the file system can do that.
	 */
	int file;
	/*
	 * the open file that has the attributes (-1: none), without an overlay's own; those
	 * that an overlay has stored escaped get their names back
	 */
	int extra;
};
/* As undo_places_put, for a file or link of that CONTENT. */
bool undo_places_put_content(struct undo_places *places, const char *path,
			     const struct undo_state *now, const struct undo_state *target,
			     const struct undo_content *content, bool *left,
			     struct err *err);
/*
 * As undo_places_put: PATH becomes another name of the file at FIRST, which has its name
 * already (undo_places_settle). TARGET is the state of that file.
 */
bool undo_places_link(struct undo_places *places, const char *path,
		      const struct undo_state *now, const struct undo_state *target,
		      const char *first, struct err *err);
/*
 * Give every file of the batch its name, and every folder its permissions: as long as an
 * undo works in a folder, its owner may do everything in it.
 */
bool undo_places_settle(struct undo_places *places, struct err *err);
