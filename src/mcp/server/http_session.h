/*
 * http_session: the clients that have shaken hands over HTTP, each known by an id that cannot be
 * guessed. There may be so many; then the one that was silent for longest
 * goes, of those without a request under way if there are any.
 */
#pragma once
#include "mcp/server/mcp.h"

#include <stdbool.h>

enum { HTTP_SESSION_ID = 48, HTTP_SESSIONS_MAX = 128 };

struct http_sessions;

struct http_sessions *http_sessions_new(struct mcp *mcp);
void http_sessions_free(struct http_sessions *sessions);

struct mcp_peer *http_session_begin(struct http_sessions *sessions,
				    char id[HTTP_SESSION_ID + 1]);
struct mcp_peer *http_session_find(struct http_sessions *sessions, const char *id);
void http_session_end(struct http_sessions *sessions, struct mcp_peer *peer);
