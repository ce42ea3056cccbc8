/* mcp_parts: the inside of the server, for src/mcp/ only, transports aside. */
#pragma once
#include "base/buf.h"
#include "mcp/message.h"
#include "mcp/server/mcp.h"
#include "session/session.h"

#include <stdint.h>

/* Facts about a client: settled by a handshake, or sent with each request. */
struct mcp_client {
	enum mcp_version version;
	bool form, url; /* kinds of elicitation it can show */
	bool sampling, roots;
	int log_level; /* what is below is not sent; MCP_LOG_NONE: nothing is */
};
enum { MCP_LOG_NONE = 1000 };
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
	struct mcp_watch *watch; /* of the prompts' folder (listen.c) */
	struct value *outputs;   /* spill files: name -> path in the cell (resources.c) */
};

/* mcp.c */
bool mcp_session(struct mcp *mcp, struct err *err); /* opened, if need be */
void mcp_request_free(struct mcp_request *request);
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
/* Nothing is to be answered. */
void mcp_drop(struct mcp_request *request);
/* These do not: a notice, or a request of ours under ID (NULL: a notice), by WAY. */
void mcp_tell(struct mcp *mcp, struct mcp_way *way, const char *id, const char *method,
	      struct value *take_params);

/* hello.c */
void mcp_initialize(struct mcp_request *request);
void mcp_discover(struct mcp_request *request);
void mcp_ping(struct mcp_request *request);
void mcp_set_level(struct mcp_request *request);
/* From the `_meta` of a modern request. False: the request has been answered. */
bool mcp_read_modern(struct mcp_request *request);
struct value *mcp_server_info(const struct mcp *mcp);

/* tools.c */
void mcp_tools_list(struct mcp_request *request);

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

/* resources.c */
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

/* listen.c */
void mcp_listen(struct mcp_request *request);
enum mcp_list { MCP_LIST_TOOLS, MCP_LIST_PROMPTS, MCP_LIST_RESOURCES };
void mcp_list_changed(struct mcp *mcp, enum mcp_list list);
void mcp_watch_open(struct mcp *mcp);
void mcp_watch_close(struct mcp *mcp);
