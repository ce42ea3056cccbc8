/*
 * http: the server over Streamable HTTP, in both eras: each request is answered with one JSON
 * object, or with a stream of events when something comes before the answer. A legacy client
 * gets a session by its handshake, and may open a stream for notices; a modern one needs none.
 * The connection of a request that is dropped cancels it.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "mcp/message.h"
#include "mcp/server/mcp.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct buf;

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

/*
 * Who may ask, before anything of the request is read further. A page in a browser can
 * make it send requests here, under a name that it has pointed at this machine: names
 * and origins are compared (DNS rebinding), and a token if there is one.
 */

struct http_place {
	struct sockaddr_storage address;
	socklen_t size;
	bool loopback;
};

/* TEXT as address: a number alone is a port of 127.0.0.1. */
bool http_place_read(const char *text, struct http_place *place, struct err *err);
void http_place_add(const struct http_place *place, struct buf *out);

struct http_guard {
	const char *token;        /* NULL: none is needed */
	const char *const *hosts; /* other names of ours; NULL-ended, or NULL */
};

/* Is HOST (of the header, port and all) one that we are called by? */
bool http_host_is_ours(const struct http_guard *guard, struct str host);
/* ORIGIN: NULL when no page asked. */
bool http_origin_is_ours(const struct http_guard *guard, const char *origin);
/* AUTHORIZATION: the header, or NULL. Takes as long for a wrong token as for the right one. */
bool http_token_fits(const struct http_guard *guard, const char *authorization);

/* Does ACCEPT (or NULL) take TYPE ("application/json")? */
bool http_accepts(const char *accept, struct str type);

/*
 * The headers that repeat what a modern request says (MCP_CODE_HEADER): VALUES in this order;
 * NULL: the header is missing.
 */
struct http_repeated {
	const char *version, *method, *name;
};
bool http_repeats(const struct http_repeated *headers, const struct mcp_message *message,
		  struct err *err);

/*
 * Arguments that SCHEMA, the tool's (or NULL), marks by "x-mcp-header": each is repeated by a
 * header Mcp-Param-NAME, or both are not there (MCP_CODE_HEADER). FIND: the header of that name,
 * NULL: there is none; *COUNT how many there are.
 */
typedef const char *http_find_header(void *context, const char *name, size_t *count);
bool http_repeats_arguments(const struct value *schema, const struct value *arguments,
			    http_find_header *find, void *context, struct err *err);
