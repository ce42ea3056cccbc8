/*
 * callback: a port of this machine's loopback that leads to the same port of the cell for
 * one request, so that a login in the person's browser can come back to the program that
 * waits for it in the cell.
 *
 * The front listens outside, and our own program in the cell (front/inside/opener.h) connects
 * to the waiting port: it brings the socket that the front then joins to a connection of
 * the browser. The front makes no socket in the cell's network, and the cell gets none of
 * ours. Bytes pass as they are.
 *
 * A browser's connection is joined when its first bytes have come, because browsers also
 * make connections that they never use. The port closes when a request was answered, or
 * after CALLBACK_OPEN_S; each connection ends at the latest then.
 */
#pragma once

#include "base/err.h"
#include "process/loop.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	CALLBACK_OPEN_S = 300,
	CALLBACK_TOKEN = 32,    /* hexadecimal digits */
	CALLBACK_JOINS_MAX = 8, /* connections at the same time, on each side */
};

struct callback;

/* Listen on 127.0.0.1:PORT. ERR has the code EADDRINUSE when the port is taken. */
bool callback_open(struct loop *loop, uint16_t port, struct callback **callback,
		   struct err *err);
void callback_close(struct callback *callback); /* ends all connections; NULL is fine */

/* The word by which a connection from the cell says that it is for CALLBACK. */
const char *callback_token(const struct callback *callback);
/* Use *TAKE_FD, a connection from the cell, for the next connection of the browser. */
void callback_join(struct callback *callback, int *take_fd);
