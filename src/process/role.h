/*
 * role: start a role of the product's own program (anchor, proxy) by exec with an empty
 * environment, so that nothing of this process's memory is in it.
 *
 * Anchor, proxy and groups are such roles. front/main.c enters them before it sets up
 * anything else, and they die with the front.
 */
#pragma once
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { ROLE_ARGUMENT = 16 }; /* a descriptor's number as text */

struct role {
	const char *program; /* NULL: this very program */
	char *const *argv;
	const int *fds; /* that it inherits; close-on-exec here, and here only; -1: none */
	size_t fd_count;
};

/*
 * *PIDFD is the new process; its exit signal is 0, so that an embedding program which waits
 * for children of its own never meets it. On false nothing was started.
 */
bool role_start(const struct role *role, int *pidfd, struct err *err);

/*
 * Kill the role behind *PIDFD, which becomes -1; with an anchor goes all in its cell. WAIT:
 * until the kernel has taken it down (a cell about a millisecond); without it the caller is
 * about to end, and nothing of the teardown is in his way.
 */
void role_end(int *pidfd, bool wait);

/* A pidfd of this process, for a role that dies with it. */
bool role_self(int *pidfd, struct err *err);
