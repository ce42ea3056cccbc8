/*
 * http_check: who may ask, before anything of the request is read further. A page in a browser
 * can make it send requests here, under a name that it has pointed at this machine: names and
 * origins are compared (DNS rebinding), and a token if there is one.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "mcp/message.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct http_place {
	struct sockaddr_storage address;
	socklen_t size;
	bool loopback;
};

/* TEXT as address: a number alone is a port of 127.0.0.1. */
bool http_place_read(const char *text, struct http_place *place, struct err *err);
/* Append "127.0.0.1:8080". */
struct buf;
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

enum { HTTP_TOKEN_MAX = 4096 }; /* bytes of a file of one */

/*
 * Take GUARD's token: GIVEN (or NULL), or what is in the file PATH unless that is NULL; TOKEN
 * (initialised) holds it then. One that others may read, or guess, protects nothing, and is refused.
 */
bool http_token_read(const char *given, const char *path, struct buf *token,
		     struct http_guard *guard, struct err *err);

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
