/*
 * http: the server over Streamable HTTP, in both eras: each request is answered with one JSON
 * object, or with a stream of events when something comes before the answer. A legacy client
 * gets a session by its handshake, and may open a stream for notices; a modern one needs none.
 * The connection of a request that is dropped cancels it.
 */
#pragma once
#include "mcp/server/mcp.h"

struct mcp_http {
	struct mcp *mcp;
	struct loop *loop;
	const char *address; /* "127.0.0.1:8080", "[::1]:0", "8080" */
	/*
	 * Only requests that bring it are taken; from the file, which others may not read, or TOKEN.
	 * Both NULL: all are, and the address must be of this machine alone.
	 */
	const char *token_file, *token;
	const char *const *hosts; /* names it is called by besides; NULL-ended */
	int stop_fd;              /* readable: end now */
	/* It serves at URL from now on. */
	void (*listening)(void *context, const char *url, bool has_token);
	void *context;
};

/* Until the end. False, EINVAL: the options are wrong. */
bool mcp_http_run(const struct mcp_http *options, struct err *err);
