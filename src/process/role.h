/*
 * role: starts a role of our own program by exec with an empty environment, so that nothing
 * of this process's memory is in it.
 *
 * Anchor, groups, proxy, broker and the ssh door are such roles. front/main.c enters them
 * before it sets up anything else, and they die with the front.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum { ROLE_ARGUMENT = 16 }; /* a descriptor's number as text */

struct role {
	const char *program; /* NULL: the program of this process */
	char *const *argv;
	/* inherited by the role; close-on-exec in this process only; -1: none */
	const int *fds;
	size_t fd_count;
};

/*
 * Start ROLE; *PIDFD is the new process. Its exit signal is 0, so an embedding program
 * that waits for its own children never sees it. On false nothing was started.
 */
bool role_start(const struct role *role, int *pidfd, struct err *err);

/*
 * Start the role NAME of PROGRAM, with three arguments: the numbers of a file in memory
 * that holds SPEC, of the socket CONTROL, and of a pidfd of this process.
 */
bool role_start_steered(const char *program, const char *name, struct str spec,
			int control, int *pidfd, struct err *err);

/*
 * Kill the role behind *PIDFD, which becomes -1; the whole cell of an anchor ends with
 * it. WAIT: wait until the kernel has ended it (about a millisecond for a cell).
 * Without WAIT the caller is about to exit and must not be delayed by the teardown.
 */
void role_end(int *pidfd, bool wait);

/* A pidfd of this process, for a role that dies with it. */
bool role_self(int *pidfd, struct err *err);

/*
 * A pidfd of our parent, for a program that must end with it though others hold its input
 * open; -1: the parent is init. False: the parent has died meanwhile.
 */
bool role_parent(int *pidfd);
