/*
 * outside: the walls of a role that stands outside of the cell and hears what comes from
 * there: proxy, broker, the ssh door. It has the network and nothing else. A role with
 * `no_network` has only the sockets that it is given. A process that removes what a cell has
 * left has one folder.
 */
#pragma once
#include "base/err.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

/*
 * Lock the calling process in, so that it can list and remove the names below FOLDER, and can
 * do nothing else: it has no socket, no program and no other descriptor, and it opens no file
 * for writing. It dies with the process that started it, PARENT; fails when PARENT, whose number
 * another process may have then, is not there any more. FOLDER becomes descriptor 3. A process
 * of root keeps the rights over files of others that it has.
 */
bool outside_enter_folder(int folder, pid_t parent, struct err *err);
