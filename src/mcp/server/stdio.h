/*
 * stdio: the server between two descriptors: one message a line, nothing else on either. Ends
 * at the end of the input, with its parent, or by a signal; what is under way then may still
 * answer for a moment.
 */
#pragma once

#include "mcp/server/mcp.h"

struct mcp_stdio {
	struct mcp *mcp;
	struct loop *loop;
	int input, output; /* the caller's */
	int stop_fd;       /* readable: end now; -1: none */
};

/* Until the end. False: the output failed before it. */
bool mcp_stdio_run(const struct mcp_stdio *options, struct err *err);
