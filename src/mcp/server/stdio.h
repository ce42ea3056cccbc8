/*
 * stdio: the server between two descriptors: one message a line, and no other bytes on
 * either descriptor. The server ends at the end of its input, with its parent, or by a
 * signal. Calls that are then under way may still answer for a moment.
 */
#pragma once

#include "mcp/server/mcp.h"

struct mcp_stdio {
	struct mcp *mcp;
	struct loop *loop;
	int input, output; /* the caller's */
	int stop_fd;       /* readable: end now; -1: none */
};

/* Serve until the end. False: the output failed before it. */
bool mcp_stdio_run(const struct mcp_stdio *options, struct err *err);
