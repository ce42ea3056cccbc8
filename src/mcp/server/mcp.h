/*
 * mcp: a server of the Model Context Protocol, without a transport: messages go in, messages
 * come out. It speaks both eras at once: "legacy" (2024-11-05 to 2025-11-25: a handshake, then
 * requests within what was agreed) and "modern" (2026-07-28: each request says for itself which
 * version it speaks and what its client can).
 *
 * A server has one session of tools, a peer for each client that it has shaken hands with, and
 * answers each request on the way that it came by. Calls enter at session_start, as everybody's
 * do. One thread, the loop's; nothing here waits.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "mcp/message.h"
#include "process/loop.h"
#include "tool/event.h"

#include <stdbool.h>
#include <stddef.h>

struct mcp;
struct mcp_peer;
struct session;

/*
 * How messages get back to a client: the transport's memory. Over stdio there is one, over HTTP
 * one for each request. When it is closed while requests wait for answers: mcp_way_gone.
 */
struct mcp_way {
	/*
	 * Send MESSAGE, which has no line end. The caller keeps the buffer, but its
	 * content may have been taken. LAST: MESSAGE answers the request that came this
	 * way. STATUS: its HTTP status (200, 400, 404).
	 */
	void (*send)(struct mcp_way *way, struct buf *message, bool last, int status);
	/* The request is over without an answer: it was cancelled. */
	void (*drop)(struct mcp_way *way);
	/*
	 * May one more request that may last begin? NULL: any request may. After false
	 * the request waits, and the owner of the way calls mcp_begin_waiting when there
	 * may be room.
	 */
	bool (*has_room)(const struct mcp_way *way);
};

/* Memory for answers that has grown beyond is given back when one is out: most are far smaller. */
enum { MCP_OUT_KEPT = 4 << 20 };

typedef void mcp_complain(void *context, const char *sentence);

struct mcp_options {
	struct loop *loop; /* borrowed; outlives the server */
	/*
	 * Open the session, in LOOP, its events going to SINK. Asked once, when it is first
	 * wanted; the session is the server's then. False: calls and lists are refused with ERR.
	 */
	bool (*open)(void *context, struct loop *loop, struct event_sink sink,
		     struct session **session, struct err *err);
	void *context;
	/*
	 * Tells of a fault that the person should repair (an unreadable prompt); or NULL.
	 */
	mcp_complain *complain;
	const char *version;      /* of the program */
	const char *instructions; /* for models; at most MCP_INSTRUCTIONS_MAX bytes */
	/*
	 * A call that takes longer goes on as a job, unless its client asked to hear of progress;
	 * 0: none does.
	 */
	double patience_s;
	bool tools_change;   /* now and then: mcp_tools_changed */
	const char *prompts; /* the folder of a person's prompts; NULL: none */
	/*
	 * The content of plugin packages, borrowed; arrays of objects, or NULL.
	 * Resources: as they are listed (uri, name, …), and `file` (a path of the host)
	 * or `text`. Templates likewise with uriTemplate, whose {places} fill {{places}}
	 * of the content. Prompts: `file`, in the form of a person's (prompt.h).
	 */
	const struct value *resources, *templates, *package_prompts;
};

enum {
	/* Clients cut what is longer, or drop it. */
	MCP_INSTRUCTIONS_MAX = 2000,
	/*
	 * Requests under way, begun or not, and bytes of these: with so many, one more that may last
	 * is refused. A transport does well to read no more for a moment.
	 */
	MCP_REQUESTS_MAX = 1024,
	MCP_REQUESTS_BYTES_MAX = 128 << 20,
};

struct mcp *mcp_new(const struct mcp_options *options);
/* Cancels what is under way and closes the session. All peers must have been freed. */
void mcp_free(struct mcp *mcp);

/* Open the session now, so that the first call does not wait for it. */
bool mcp_open(struct mcp *mcp, struct err *err);

/*
 * WAY: where notices go that belong to no request (a list has changed); NULL: nowhere for now.
 */
struct mcp_peer *mcp_peer_new(struct mcp *mcp, struct mcp_way *way);
void mcp_peer_free(struct mcp_peer *peer); /* cancels its requests; NULL is fine */
bool mcp_peer_has_way(const struct mcp_peer *peer);
void mcp_peer_set_way(struct mcp_peer *peer, struct mcp_way *way);
/* Are requests of it under way, or does it hear of notices? */
bool mcp_peer_is_busy(const struct mcp_peer *peer);

/* Facts about a message that the message itself does not say. */
enum mcp_manner {
	MCP_AS_AGREED, /* legacy requests are served after a handshake */
	MCP_LENIENT,   /* and without one: HTTP without a session */
	MCP_MODERN,    /* it is modern, whatever its `_meta` lacks */
};
/*
 * Take one message of PEER, or a batch; what it brings about comes by WAY, perhaps at once. False:
 * nothing is to be answered.
 */
bool mcp_take(struct mcp_peer *peer, struct mcp_way *way,
	      const struct mcp_message *message, enum mcp_manner manner);
/* Answer MESSAGE, which could not be read, or may not be taken. */
void mcp_refuse(struct mcp *mcp, struct mcp_way *way, const struct mcp_message *message,
		int status, const struct err *why);

/* The schema of the tool that MESSAGE calls, when it brought one of its own; NULL: none. */
const struct value *mcp_schema_of_call(struct mcp *mcp, const struct mcp_message *message);

/* Does this request say for itself which version it speaks? NULL: it does not. */
const char *mcp_modern_version(const struct mcp_message *message);
/* Is VERSION one that a handshake can settle on? */
bool mcp_version_is_legacy(const char *version);

/* WAY is closed: cancel what came by it. */
void mcp_way_gone(struct mcp *mcp, struct mcp_way *way);

/* The tools of the session have changed: tell each client that wants to know. */
void mcp_tools_changed(struct mcp *mcp);

/* Requests under way, those that only listen aside; of these, those that wait to begin. */
size_t mcp_busy(const struct mcp *mcp);
size_t mcp_waiting(const struct mcp *mcp);
/* No more that may last are taken. */
bool mcp_is_full(const struct mcp *mcp);
/*
 * May the answer of MESSAGE take long, or is anything of it such a request? All others are answered
 * at once, whatever is under way: who waits can always ask whether we live, and cancel.
 */
bool mcp_may_last(const struct mcp_message *message);
/* Begin what waits, in the order of its coming, as far as there is room. */
void mcp_begin_waiting(struct mcp *mcp);
/* End gracefully: tell those who listen that nothing follows. */
void mcp_goodbye(struct mcp *mcp);
