/*
 * http: the server over Streamable HTTP, in both eras. Each request is answered with one
 * JSON object, or with a stream of events when other messages come before the answer. A
 * legacy client gets a session by its handshake, and may open a stream for notices; a
 * modern client needs no session. A client that drops the connection of a request cancels
 * the request.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "mcp/message.h"
#include "mcp/server/mcp.h"
#include "mcp/server/service.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct buf;

struct mcp_http {
	struct mcp_service *service; /* which has the cells */
	struct loop *loop;
	const char *address; /* "127.0.0.1:8080", "[::1]:0", "8080" */
	/* a socket that listens already, which is taken in place of ADDRESS; -1: none */
	int take_socket;
	/*
	 * A request must bring the token that is in the file (which others may not read)
	 * or is TOKEN. Both NULL: every request is taken, and the address must be
	 * reachable from this machine only.
	 */
	const char *token_file, *token;
	const char *const *hosts; /* more names of this server; NULL-ended */
	/* readable: end, as mcp_service_drain says; in a service of the configuration */
	int stop_fd;
	/* Called when the server begins to serve at URL. */
	void (*listening)(void *context, const char *url, bool has_token);
	void (*draining)(void *context); /* called when it has been told to end; or NULL */
	void *context;
};

/*
 * Serve until the end. False, EINVAL: the options are wrong. Beside /mcp there are /healthz,
 * /readyz and, at the address of its own that the settings of the service name, /metrics.
 */
bool mcp_http_run(const struct mcp_http *options, struct err *err);

/*
 * Decides whether a client may ask, before any more of its request is read. A page in a
 * browser can make the browser send requests here, under a name that the page's owner has
 * pointed at this machine (DNS rebinding). So names and origins are compared, and a token
 * if there is one.
 */

struct http_place {
	struct sockaddr_storage address;
	socklen_t size;
	bool loopback;
};

/* Parse TEXT as an address. A number without a host is a port of 127.0.0.1. */
bool http_place_read(const char *text, struct http_place *place, struct err *err);
void http_place_add(const struct http_place *place, struct buf *out);

struct http_guard {
	const char *token;        /* NULL: none is needed */
	const char *const *hosts; /* other names of ours; NULL-ended, or NULL */
};

/* Is HOST (the header, with its port) a name of ours? */
bool http_host_is_ours(const struct http_guard *guard, struct str host);
/* ORIGIN NULL: no page has sent the request. */
bool http_origin_is_ours(const struct http_guard *guard, const char *origin);
/* AUTHORIZATION: the header, or NULL. A wrong token takes as long as the right one. */
bool http_token_fits(const struct http_guard *guard, const char *authorization);

/* Does ACCEPT (or NULL) allow TYPE ("application/json")? */
bool http_accepts(const char *accept, struct str type);

/*
 * The headers that repeat parts of a modern request (MCP_CODE_HEADER): VALUES in this
 * order; NULL: the header is missing.
 */
struct http_repeated {
	const char *version, *method, *name;
};
bool http_repeats(const struct http_repeated *headers, const struct mcp_message *message,
		  struct err *err);

/*
 * Compare the arguments that SCHEMA, the tool's (or NULL), marks by "x-mcp-header": each
 * must be repeated by a header Mcp-Param-NAME, or both must be missing (MCP_CODE_HEADER).
 * FIND returns the header of a name, NULL: there is none; *COUNT: how many there are.
 */
typedef const char *http_find_header(void *context, const char *name, size_t *count);
bool http_repeats_arguments(const struct value *schema, const struct value *arguments,
			    http_find_header *find, void *context, struct err *err);
