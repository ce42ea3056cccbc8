/*
 * outside: the walls of a process that has the network and nothing else: the proxy, which
 * stands outside of the cell.
 */
#pragma once
#include "base/err.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

/* The user that a process of root becomes: without an account, and no cell's user. */
enum { SANDBOX_OUTSIDE_UID = SANDBOX_UID + 1 };

struct sandbox_outside {
	int parent_pidfd; /* of the front, with which it dies; is closed */
	int keep;         /* the one descriptor that stays, beside 0, 1 and 2 */
	uint64_t open_files;
};

/*
 * From here on the calling process has sockets, time and memory: no file right, no
 * program, no new process, nobody else's descriptor, no debugger, and root's has become
 * nobody.
 */
bool outside_enter(const struct sandbox_outside *walls, struct err *err);
