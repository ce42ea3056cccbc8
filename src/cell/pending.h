/*
 * pending: keeps the work that a session leaves when its front dies: the audit of what
 * its commands left behind (guard.h), and the logs of the calls that were writing. The
 * files lie in the user's state folder, and only fronts can name them. A file that no
 * process holds locked belongs to a dead front, and the next session of the workspace
 * takes it over.
 *
 * A worker gets one file that is named here, open: the log of its call (record.h), which
 * is a step of undo as well. It has a name in this folder as long as the call goes on, so
 * that a log whose session died is found without a look at all steps. The log cannot be
 * trusted, because an attacker may have taken the worker over. So the front stores
 * separately what the session was allowed to write, and a later session, which may have
 * more rights, puts back only writes that the earlier session was allowed to make.
 *
 * A worker outlives its killed front for a moment, and may go on with its write in that
 * time. The log is therefore locked until both have closed it: the lock belongs to the
 * open file, which they share. A session that finds it locked waits. When the worker does
 * not end in time, the dead front's files stay for a later session, and this session must
 * not begin: the worker may still write. The same holds when another living session puts
 * the writes back at this moment. That session has a second lock (fcntl) on the dead
 * front's file, by which it differs from a front that simply lives.
 */
#pragma once

#include "base/json/fields.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct cell_spec;
struct guard;
struct pending;

/*
 * Keep GUARD in FOLDER, in a file of WORKSPACE, until pending_close. One without roots is that of
 * a session whose writes all go into a layer, and FOLDER lies in that layer (review.h). When an earlier
 * front of this workspace died and left a file, GUARD becomes the guard with which that
 * front began, and *DUE becomes true: the first call audits before it runs. NULL when no
 * file can be kept there, and no earlier front has left a log.
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

/* Is there in the open FOLDER a log in which a write has no end? */
bool pending_waits(int folder);

/* The log of a call. */
struct pending_log {
	int fd;          /* borrowed; -1: none */
	unsigned number; /* of its name in the folder; 0: it has none */
};
/*
 * Give the log FD of a call in the cell of SPEC a name in the folder, and keep the rights of
 * SPEC with it. FD -1: make a file for the log, which the caller closes. When PENDING is
 * NULL, or the rights or a new file cannot be written, the log has no name, or lies in
 * memory: then only the death of the worker can be repaired. When FD can be given no name,
 * LOG gets no descriptor, with errno: the call must not write.
 */
void pending_hold(struct pending *pending, const struct cell_spec *spec, int fd,
		  struct pending_log *log);
/*
 * The call is over, and so are all writes in its log, which loses the name. A log that is
 * not dropped is left to the next session.
 */
void pending_drop(struct pending *pending, struct pending_log *log);

enum pending_left_state {
	PENDING_OPEN,    /* somebody has to put the write back */
	PENDING_BLOCKED, /* nothing can be done about it now: `why` */
	/*
	 * It lacks a part of a set whose names were exchanged (record.h). Somebody has to
	 * tell of the temporary files. It is kept as `name`, which no later session looks at.
	 */
	PENDING_DAMAGED,
	/*
	 * It is no log of this version, and so nobody knows what to do. It is kept as
	 * `name`, which no later session looks at.
	 */
	PENDING_FOREIGN,
};

/* A log that a dead front left, in which a write has no end. */
struct pending_left_log {
	enum pending_left_state state;
	int fd;               /* -1: it is not open */
	char *name;           /* its path in the folder */
	char *file;           /* the first file of that write; NULL: unknown */
	const char *why;      /* words */
	struct value *rights; /* for place_put_back */
	/*
	 * the folders in which a person let its session write, as far as the write is in
	 * one of them: objects with the fields of pending_root
	 */
	struct value *granted;
};
/* The log INDEX; NULL: there are no more. */
const struct pending_left_log *pending_left(const struct pending *pending, size_t index);
/*
 * Somebody has worked off the logs that this session can work off. ALL: nothing is left
 * to do, so the dead fronts' files go; else they stay for a later session.
 */
void pending_mended(struct pending *pending, bool all);

/*
 * Note that a person lets the session write the folder ROOT at PATH, so that a later
 * session may put back the writes that are begun there.
 */
void pending_grant(struct pending *pending, const char *path, const struct stat *root);
enum { PENDING_FILE = 48 };
struct pending_root {
	char *path;
	struct str file; /* as pending_file prints it */
};
extern const struct field pending_root_fields[];
void pending_file(const struct stat *st, char text[PENDING_FILE]);
