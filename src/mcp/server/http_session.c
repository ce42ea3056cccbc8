/* http_session: see http_session.h. */
#include "mcp/server/http_session.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct session_row {
	struct mcp_peer *peer; /* NULL: the row is free */
	char id[HTTP_SESSION_ID + 1];
	int64_t used_ms;
};

struct http_sessions {
	struct mcp *mcp;
	struct session_row rows[HTTP_SESSIONS_MAX];
};

struct http_sessions *http_sessions_new(struct mcp *mcp)
{
	struct http_sessions *sessions = memory_alloc(sizeof(*sessions));

	sessions->mcp = mcp;
	return sessions;
}

void http_sessions_free(struct http_sessions *sessions)
{
	if (sessions == NULL)
		return;
	for (size_t i = 0; i < HTTP_SESSIONS_MAX; i++)
		mcp_peer_free(sessions->rows[i].peer);
	free(sessions);
}

static void make_id(char id[HTTP_SESSION_ID + 1])
{
	unsigned char bytes[HTTP_SESSION_ID / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		abort();
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(id + 2 * i, 3, "%02x", bytes[i]);
}

/* Is ROW rather to be had than OTHER: free, without work under way, silent for longer? */
static bool goes_before(const struct session_row *row, const struct session_row *other)
{
	if (row->peer == NULL)
		return true;
	if (mcp_peer_is_busy(row->peer) != mcp_peer_is_busy(other->peer))
		return mcp_peer_is_busy(other->peer);
	return row->used_ms < other->used_ms;
}

struct mcp_peer *http_session_begin(struct http_sessions *sessions,
				    char id[HTTP_SESSION_ID + 1])
{
	struct session_row *row = &sessions->rows[0];

	for (size_t i = 1; i < HTTP_SESSIONS_MAX && row->peer != NULL; i++) {
		if (goes_before(&sessions->rows[i], row))
			row = &sessions->rows[i];
	}
	mcp_peer_free(row->peer);
	make_id(row->id);
	row->peer = mcp_peer_new(sessions->mcp, NULL);
	row->used_ms = clock_now_ms();
	memcpy(id, row->id, sizeof(row->id));
	return row->peer;
}

struct mcp_peer *http_session_find(struct http_sessions *sessions, const char *id)
{
	for (size_t i = 0; i < HTTP_SESSIONS_MAX; i++) {
		struct session_row *row = &sessions->rows[i];

		if (row->peer != NULL && strcmp(row->id, id) == 0) {
			row->used_ms = clock_now_ms();
			return row->peer;
		}
	}
	return NULL;
}

void http_session_end(struct http_sessions *sessions, struct mcp_peer *peer)
{
	for (size_t i = 0; i < HTTP_SESSIONS_MAX; i++) {
		if (sessions->rows[i].peer == peer) {
			sessions->rows[i].peer = NULL;
			mcp_peer_free(peer);
		}
	}
}
