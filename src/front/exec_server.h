/*
 * exec_server: serves one client that wants programs run and files read and written, as
 * the exec server of Codex does, between two descriptors: one JSON object a line, without
 * a `jsonrpc` member. All of it happens in the cell of one session.
 *
 * It translates this protocol to the functions that `glovebox serve` uses: serve/caller.h reads and
 * writes the lines, a process of the client is a program of session/piped.h, and file calls are
 * calls of the internal tools fs_read, fs_write and fs_change. Names are copied by the program cp
 * in the cell. A process ends with the cell, and everything that it started ends with it.
 * Everything that is changed is a step of `glovebox undo`. The `sandbox` of a request is
 * ignored: the cell is the wall. `env` is passed on but for the variables that the cell sets
 * itself (policy_check_variable), and `inherit` means the cell's environment.
 *
 * The output of a process goes to the client as notices, numbered from 1, and is kept for
 * `process/read`, the newest EXEC_SERVER_KEPT bytes of it. What a wall has refused comes as
 * the last piece of the error output. A client that does not read its notices holds up its
 * processes, not this program. Handles are names: each block opens the file again, and is
 * refused when the name leads to another file now.
 *
 * Errors: -32004 a missing file, -32600 a request that cannot be carried out, -32601 an
 * unknown method, -32602 wrong parameters, -32603 everything else.
 */
#pragma once

#include "base/err.h"
#include "front/verbs/exec.h"
#include "session/session.h"

#include <stdbool.h>

/* Ceilings of one client. A request beyond one of them is refused. */
enum {
	EXEC_SERVER_LINE = 16 << 20, /* bytes of a request */
	EXEC_SERVER_PROCESSES = 64,  /* at the same time */
	EXEC_SERVER_ENDED = 64,      /* that have ended and can still be read */
	EXEC_SERVER_KEPT = 1 << 20,  /* bytes of the output of one process */
	EXEC_SERVER_INPUT = 1 << 20, /* bytes that a process has not read yet */
	EXEC_SERVER_HANDLES = 64,    /* open files */
	EXEC_SERVER_CALLS = 256,     /* file calls and waiting reads under way, each */
	EXEC_SERVER_FILE = 32 << 20, /* bytes of a file that is read as a whole */
	EXEC_SERVER_NAME = 256,      /* bytes of a name that the client gives */
};

struct exec_server_options {
	struct session *session;
	const struct policy_words *words; /* for the sentences about refusals */
	const struct exec_time *time;     /* of each process */
	int input, output;                /* the caller's */
	int stop_fd;                      /* readable: end now */
};

/*
 * Serve until the end of the input, or until stop_fd is readable. False: the output failed
 * before that. The caller closes the session, which ends all processes.
 */
bool exec_server_run(const struct exec_server_options *options, struct err *err);
