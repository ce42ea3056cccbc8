/*
 * outside: the walls of a role that stands outside of the cell and hears what comes from
 * there: proxy, broker, the ssh door. It has the network and nothing else. A role with
 * `no_network` has only the sockets that it is given. A process that removes, saves or builds
 * again what a cell has left has one folder, and one that copies files has two.
 */
#pragma once
#include "base/err.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

/* The user that a process of root becomes. It has no account, and no cell has it. */
enum { SANDBOX_OUTSIDE_UID = SANDBOX_UID + 1 };

struct sandbox_outside {
	int parent_pidfd; /* of the front; the process dies with the front */
	int keep;         /* the only descriptor that stays open besides 0, 1 and 2 */
	uint64_t open_files;
	bool no_network; /* not even sockets of its own */
};

/*
 * Lock the calling process in. Afterwards it has sockets, time and memory, but no file
 * right, no program, no new process, no other descriptor and no debugger. A process of
 * root has become SANDBOX_OUTSIDE_UID.
 */
bool outside_enter(const struct sandbox_outside *walls, struct err *err);

/* The work of a process with one folder. */
enum outside_work {
	OUTSIDE_REMOVES, /* lists names and removes them; opens nothing for writing */
	OUTSIDE_READS,   /* lists names and reads files, and writes to `file` only */
	/* the same, whatever permissions the files of its user have, where the kernel lets it */
	OUTSIDE_READS_ALL,
	OUTSIDE_BUILDS, /* makes names of every kind, and reads from `file` */
	OUTSIDE_COPIES, /* makes and writes files there, and reads below `file`, a folder */
};

/* The descriptors of that process. It has no other one. */
enum { OUTSIDE_FOLDER = 3, OUTSIDE_FILE = 4 };

struct outside_folder {
	enum outside_work work;
	int folder; /* becomes OUTSIDE_FOLDER */
	int file;   /* becomes OUTSIDE_FILE; -1: none */
};

/*
 * Start a process that can do that work below that folder, and nothing else: it has no socket
 * and no program. It runs ACT with CONTEXT, and dies with the caller, which waits for it. A
 * process of root keeps the rights over files of others that it has. Returns what ACT returns: 0
 * or a number of errno.h. EPERM: it could not be locked in; EINTR: it was killed.
 */
int outside_run(const struct outside_folder *walls, int (*act)(void *context),
		void *context);
