/*
 * pending: keeps the work that a session leaves when its front dies: the audit of what
 * its commands left behind (guard.h), and the writes that its workers had begun. The
 * files lie in the user's state folder, and only fronts can name them. A file that no
 * process holds locked belongs to a dead front, and the next session of the workspace
 * takes it over.
 *
 * A worker outlives its killed front for a moment, and may finish a step of its write in
 * that time. The journal is therefore locked until both have closed it: the lock belongs
 * to the open file, which they share. A session that finds it locked waits, and leaves
 * the dead front's files to a later session when the worker does not end in time.
 *
 * A worker gets one of these files, open: the journal of its call (place.h). The
 * journal cannot be trusted, because an attacker may have taken the worker over. So the
 * front stores separately what the session was allowed to write. A later session, which
 * may have more rights, finishes only writes that the earlier session was allowed to
 * make.
 */
#pragma once

#include "base/value.h"

#include <stdbool.h>
#include <sys/stat.h>

struct cell_spec;
struct guard;
struct pending;

/*
 * Keep GUARD in FOLDER, in a file of WORKSPACE, until pending_close. When an earlier
 * front of this workspace died and left a file, GUARD becomes the guard with which that
 * front began, and *DUE becomes true: the first call audits before it runs. NULL when no
 * file can be kept there.
 */
struct pending *pending_open(const char *folder, const char *workspace,
			     struct guard *guard, bool *due);
/* While DUE is true, the file stays when the front ends. */
void pending_set_audit_due(struct pending *pending, bool due);
void pending_close(struct pending *pending); /* NULL is fine */

/*
 * Does a living front hold a file in FOLDER for the workspace with this HASH (its first
 * digits, as in the names of the files)?
 */
bool pending_is_held(const char *folder, const char *hash);

/* Writes that dead fronts left unfinished, for place_finish; NULL: none. */
const struct value *pending_writes(const struct pending *pending);
/*
 * A worker in the cell of SPEC has finished the writes that this cell may make. The
 * others stay for a later session.
 */
void pending_mended(struct pending *pending, const struct cell_spec *spec);

/*
 * Note that a person lets the session write the folder ROOT at PATH, so that a later
 * session may finish the writes that are begun there.
 */
void pending_grant(struct pending *pending, const char *path, const struct stat *root);
/*
 * Returns the writes of dead fronts that meet such folders, for a worker that sees them;
 * NULL: none. *ROOTS are the folders, as objects with `path` and `file` (as pending_file
 * prints it). pending_granted_mended: these writes are finished, or can never be.
 */
const struct value *pending_granted(const struct pending *pending,
				    const struct value **roots);
void pending_granted_mended(struct pending *pending);

enum { PENDING_FILE = 48 };
void pending_file(const struct stat *st, char text[PENDING_FILE]);

/* The journal of one call. */
struct pending_journal {
	int fd; /* -1: none */
	unsigned number;
};
/*
 * Give a journal to a call in the cell of SPEC, and keep the rights of SPEC with it. When
 * PENDING is NULL or no file can be made, the journal lies in memory: then only the death
 * of the worker can be repaired.
 */
void pending_give(struct pending *pending, const struct cell_spec *spec,
		  struct pending_journal *journal);
/* The call is over, and all writes in its journal are done. */
void pending_take_back(struct pending *pending, struct pending_journal *journal);
