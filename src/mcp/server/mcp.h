/*
 * mcp: a server of the Model Context Protocol, without a transport: messages go in, messages
 * come out. It speaks both eras at once: "legacy" (2024-11-05 to 2025-11-25: a handshake, then
 * requests within what was agreed) and "modern" (2026-07-28: each request says for itself which
 * version it speaks and what its client can).
 *
 * A server has one session of tools, a peer for each client that it has shaken hands with, and
 * answers each request on the way that it came by. Calls enter at session_start, as everybody's
 * do. One thread, the loop's; nothing here waits.
 *
 * A transport (stdio, or http over http_daemon) reads whole messages and hands them to
 * mcp_take, together with the way by which answers go back. All that a request brings
 * about, immediately or later, leaves by that way. A method is one row of the table in
 * mcp.c and a function; it comes with docs/mcp.md and cases in tests/mcp/.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "mcp/message.h"
#include "process/loop.h"
#include "session/session.h"
#include "tool/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	 * of the content. Prompts: `file`, in the form of a person's (prompts.h).
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

/* The inside of the server, for src/mcp/ only, transports aside. */

/* Facts about a client: settled by a handshake, or sent with each request. */
struct mcp_client {
	enum mcp_version version;
	bool form, url; /* kinds of elicitation it can show */
	bool sampling, roots;
	int log_level; /* what is below is not sent; MCP_LOG_NONE: nothing is */
};
/* The place of a level of syslog's names, debug being 0; -1: there is no such level. */
int mcp_log_level(const char *name);

struct mcp_peer {
	struct mcp *mcp;
	struct mcp_peer *next, *previous;
	struct mcp_way *way;
	struct mcp_client client;
	bool known;            /* has sent initialize */
	struct value *watched; /* URIs it subscribed to, each as a key; or NULL */
};

/* A request that is not answered yet. */
struct mcp_request {
	struct mcp *mcp;
	struct mcp_request *next, *previous;
	struct mcp_request *next_here; /* of those with ids alike */
	struct mcp_peer *peer;
	struct mcp_way *way;
	struct value *id;
	const struct mcp_method *method;
	struct value *params; /* never NULL: an object */
	struct mcp_client client;
	struct mcp_call *call; /* what it waits for; NULL: it listens, or is under way */
	struct value *listens_to; /* what a client agreed to hear of; NULL: it does not listen */
	size_t bytes;             /* of its message */
	bool waits;               /* to begin */
};

struct mcp_method {
	const char *name;
	bool legacy, modern;
	int ttl_ms; /* of its result, in the modern era; < 0: it says nothing of it */
	void (*run)(struct mcp_request *request);
	bool lasts; /* its answer may take long */
};

enum { MCP_RUN = 16 };

/* As many lists: hundreds of requests are under way when a client does not wait. */
enum { MCP_SLOTS = 256 };

struct mcp {
	struct mcp_options options;
	char *instructions, *prompts, *version;
	struct session *session; /* NULL: not opened */
	bool tried;              /* to open it */
	struct err failure;      /* why it is not there */
	struct mcp_peer *first_peer;
	struct mcp_request *first, *last;
	struct mcp_request *first_waiting;
	struct mcp_request *by_id[MCP_SLOTS];
	size_t busy;    /* of these, that do not only listen */
	size_t bytes;   /* of their messages */
	size_t waiting; /* of these, to begin */
	struct mcp_call *first_call, *last_call;
	struct mcp_call *by_number[MCP_SLOTS];
	struct mcp_call *first_done; /* their answers are due */
	struct mcp_batch *first_batch;
	uint64_t next_call, next_question;
	struct timer settling; /* what has ended is answered when the loop's turn ends */
	struct buf out;        /* one message */
	struct seal_key key;
	char run[MCP_RUN + 1];   /* tells this server from those before it */
	struct mcp_watch *watch; /* of the prompts' folder (mcp.c) */
	struct value *outputs;   /* spill files: name -> path in the cell (prompts.c) */
};

/* mcp.c */
bool mcp_session(struct mcp *mcp, struct err *err); /* opened, if need be */
/* Something has ended: calls_settle is due. */
void mcp_settle_soon(struct mcp *mcp);

/* answer.c: each of these ends the request. */
void mcp_answer(struct mcp_request *request, struct value *take_result);
/* The members of the result as JSON text, without the braces. */
void mcp_answer_text(struct mcp_request *request, struct str members);
/*
 * The same in steps, for large results. mcp_answer_begin returns the buffer for the
 * members, at least one; mcp_answer_end sends it. Nothing else may be sent in between.
 */
struct buf *mcp_answer_begin(struct mcp_request *request);
void mcp_answer_end(struct mcp_request *request);
void mcp_fail(struct mcp_request *request, enum mcp_code code, struct value *take_data,
	      const char *format, ...) __attribute__((format(printf, 4, 5)));
/* These do not: a notice, or a request of ours under ID (NULL: a notice), by WAY. */
void mcp_tell(struct mcp *mcp, struct mcp_way *way, const char *id, const char *method,
	      struct value *take_params);

/* call.c */
void mcp_tools_call(struct mcp_request *request);
struct event_sink mcp_calls_sink(struct mcp *mcp);
/* Read the output at PATH in the cell, which is the resource URI. */
void mcp_call_output(struct mcp_request *request, const char *uri, const char *path);
/* Answer calls that have ended. */
void mcp_calls_settle(struct mcp *mcp);
/* A client's response to a question of ours. */
void mcp_calls_answered(struct mcp_peer *peer, const struct mcp_message *message);
/* The request is no more wanted: its call ends. */
void mcp_call_cancel(struct mcp_call *call);
void mcp_calls_free(struct mcp *mcp);

/* prompts.c */
void mcp_resources_list(struct mcp_request *request);
void mcp_templates_list(struct mcp_request *request);
void mcp_resources_read(struct mcp_request *request);
void mcp_resources_subscribe(struct mcp_request *request);
void mcp_resources_unsubscribe(struct mcp_request *request);
/* RESULT has a spill file: the link to it, or NULL. */
struct value *mcp_resource_of(struct mcp *mcp, const struct tool_result *result);
/* One item of `contents` for URI, which the front has at hand; NULL: it has not. */
struct value *mcp_resource_at_hand(struct mcp *mcp, const char *uri);

/* prompts.c */
void mcp_prompts_list(struct mcp_request *request);
void mcp_prompts_get(struct mcp_request *request);
void mcp_complete(struct mcp_request *request);

/* mcp.c */
enum mcp_list { MCP_LIST_TOOLS, MCP_LIST_PROMPTS, MCP_LIST_RESOURCES };
void mcp_list_changed(struct mcp *mcp, enum mcp_list list);
