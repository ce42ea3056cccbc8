/*
 * pending: what a session leaves to do when its front dies: the audit of what its commands
 * left behind (audit.h), and the writes that its workers had begun. It lies in the user's
 * state folder, in files that nobody but fronts can name. One that nobody holds any more is a
 * dead front's, and the next session of the workspace takes it over.
 *
 * A worker outlives its killed front for a moment, and may end a step of its write in it. The
 * journal is therefore locked until both have closed it: the lock belongs to the open file, which
 * they share. A session that finds it locked waits, and leaves the dead front's files to a later
 * session when the worker does not end in time.
 *
 * A worker gets one file of it, open: the journal of its call (place_journal.h). What it says
 * is a worker's word, or of whoever has taken that worker over. So the front keeps apart what
 * the session was allowed to write, and a later session, which may do more, does nothing in
 * the earlier one's name that this could not have done.
 */
#pragma once
#include "base/value.h"

#include <stdbool.h>
#include <sys/stat.h>

struct cell_spec;
struct pending;

/*
 * Keep GUARD in FOLDER, a file of WORKSPACE's, until pending_close. When an earlier
 * front of this workspace died and left one, GUARD becomes what it began with, and *DUE
 * true: the first call audits before it runs. NULL when nothing can be kept there.
 */
struct pending *pending_open(const char *folder, const char *workspace,
			     struct value *guard, bool *due);
/* While DUE the file stays when the front ends. */
void pending_set_audit_due(struct pending *pending, bool due);
void pending_close(struct pending *pending); /* NULL is fine */

/*
 * Does a front that lives hold one in FOLDER for the workspace with this HASH (its first digits,
 * as the names have them)?
 */
bool pending_is_held(const char *folder, const char *hash);

/* Writes that dead fronts left unfinished, for files_finish_writes; NULL: none. */
const struct value *pending_writes(const struct pending *pending);
/*
 * A worker in the cell of SPEC has finished those that this cell may write. Others stay for a later
 * session.
 */
void pending_mended(struct pending *pending, const struct cell_spec *spec);

/*
 * A person lets the session write the folder ROOT, which is at PATH: what is begun there is known
 * for that from now on.
 */
void pending_grant(struct pending *pending, const char *path, const struct stat *root);
/*
 * Writes of dead fronts that meet such folders, for a worker that has these: *ROOTS are objects
 * with `path` and `file`, as pending_file prints it. NULL: none. And: they are finished, or can
 * never be.
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
 * A journal for a call in the cell of SPEC, whose rights are kept with it. PENDING NULL, or no
 * file can be made: it lies in memory, and only the death of the worker can be mended.
 */
void pending_give(struct pending *pending, const struct cell_spec *spec,
		  struct pending_journal *journal);
/* The call is over, and what its journal said is done. */
void pending_take_back(struct pending *pending, struct pending_journal *journal);
