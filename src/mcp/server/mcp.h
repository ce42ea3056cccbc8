/*
 * mcp: a server of the Model Context Protocol, without a transport: messages go in,
 * messages come out. It speaks both eras at the same time: "legacy" (2024-11-05,
 * 2025-06-18, 2025-11-25: a handshake, then requests within the agreed version) and "modern"
 * (2026-07-28: each request names its version and its client's capabilities).
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
 * The way by which messages go back to a client, in memory of the transport. Over stdio
 * there is one way, over HTTP one for each request. When a way is closed while requests
 * wait for answers, call mcp_way_gone.
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
	 * Is there room for one more long answer? Otherwise the request waits, as it does
	 * when too many have begun; the owner of the way calls mcp_begin_waiting in each
	 * turn of the loop. NULL: requests begin in any case.
	 */
	bool (*has_room)(const struct mcp_way *way);
};

/*
 * When the memory for answers has grown larger than this, it is freed after the answer.
 * Most answers are far smaller.
 */
enum { MCP_OUT_KEPT = 4 << 20 };

typedef void mcp_complain(void *context, const char *sentence);

/*
 * Everything that happens in a server and that somebody may have to account for, told at one
 * place: struct mcp_observer.
 */
enum mcp_told {
	MCP_TOLD_OPEN = 1, /* a cell: token, cell; text: the client's address */
	MCP_TOLD_CLOSE,    /* a cell: token, cell; text: why */
	MCP_TOLD_CALL,     /* a call begins: call, tool, arguments, trace */
	MCP_TOLD_VERDICT, /* of a call that is not simply allowed; text: "ask" or "deny" */
	MCP_TOLD_GRANT,   /* somebody has answered for a call; text: the answer */
	MCP_TOLD_DENIAL,  /* something was refused to a call; denial */
	MCP_TOLD_END,     /* a call has ended; result */
	MCP_TOLD_TOKEN,   /* a token; text: "added", "changed", "removed" or "expired" */
};

/* All pointers are borrowed for the time of the call; those that a kind does not have are NULL. */
struct mcp_record {
	enum mcp_told what;
	const char *token, *cell; /* filled in by the service */
	const char *call, *tool;
	const struct value *arguments; /* an object, or what the client sent in its place */
	const struct value *trace;     /* event_trace_of */
	const struct value *denial;    /* an item of denial_list */
	const struct tool_result *result;
	const char *text;
};

/*
 * Tell RECORD before it has an effect, where the kind is one that begins something (open, call,
 * grant). False for such a record: it must not happen, and ERR says why to the client. For
 * other records the answer does not matter. `tell` NULL: nobody listens.
 */
struct mcp_observer {
	bool (*tell)(void *context, const struct mcp_record *record, struct err *err);
	void *context;
};

struct mcp_options {
	struct loop *loop; /* borrowed; outlives the server */
	/*
	 * Open the session, in LOOP, with its events going to SINK. Called once, when the
	 * session is first needed; the server then owns the session. False: calls and
	 * lists are refused with ERR.
	 */
	bool (*open)(void *context, struct loop *loop, struct event_sink sink,
		     struct session **session, struct err *err);
	void *context;
	/*
	 * Reports a fault that the person should repair (an unreadable prompt); or NULL.
	 */
	mcp_complain *complain;
	const char *version;      /* of the program */
	const char *instructions; /* for models; at most MCP_INSTRUCTIONS_MAX bytes */
	/*
	 * A call that takes longer goes on as a job, unless its client asked for progress
	 * notices. 0: no call does.
	 */
	double patience_s;
	bool tools_change;   /* they may change, and mcp_list_changed is called then */
	const char *prompts; /* the folder of a person's prompts; NULL: none */
	/*
	 * The content of plugin packages, borrowed; arrays of objects, or NULL.
	 * Resources: in the form in which they are listed (uri, name, …), and `file` (a
	 * path of the host) or `text`. Templates likewise with uriTemplate, whose
	 * {places} fill the {{places}} of the content. Prompts: `file`, in the same form
	 * as a prompt of the person's folder (mcp_prompt_read).
	 */
	const struct value *resources, *templates, *package_prompts;
	struct mcp_observer observer; /* of the calls */
	/* no notices of changed prompts: a watch is scarce, and a service has many servers */
	bool unwatched;
};

enum {
	/* Clients cut or drop longer instructions. */
	MCP_INSTRUCTIONS_MAX = 2000,
	/*
	 * The most requests under way, begun or not, and their bytes. With so many, a
	 * further request that may last is refused. A transport should then stop reading
	 * for a moment.
	 */
	MCP_REQUESTS_MAX = 1024,
	MCP_REQUESTS_BYTES_MAX = 128 << 20,
};

struct mcp *mcp_new(const struct mcp_options *options);
/* Cancels all requests and closes the session. All peers must have been freed before. */
void mcp_free(struct mcp *mcp);

/*
 * Open the session unless it is open: the first call opens it, or a caller does before, so
 * that the first call does not wait.
 */
bool mcp_open(struct mcp *mcp, struct err *err);

/*
 * WAY: for notices that belong to no request (a list has changed); NULL: they are not
 * sent for now. SESSION: the id of its session, of which spans get a hash; NULL: it has none.
 */
struct mcp_peer *mcp_peer_new(struct mcp *mcp, struct mcp_way *way, const char *session);
void mcp_peer_free(struct mcp_peer *peer); /* cancels its requests; NULL is fine */
/* False: PEER has a way already. */
bool mcp_peer_set_way(struct mcp_peer *peer, struct mcp_way *way);
/* Are requests of PEER under way, or does it listen for notices? */
bool mcp_peer_is_busy(const struct mcp_peer *peer);

/* Facts about a message that the message itself does not say. */
enum mcp_manner {
	MCP_AS_AGREED, /* legacy requests are served only after a handshake */
	/* legacy requests are served without one: HTTP without a session */
	MCP_LENIENT,
	MCP_MODERN, /* the message is modern, even if its `_meta` is incomplete */
};
/*
 * Take one message of PEER. Its answer goes by WAY, perhaps before this returns. False: no
 * answer will follow.
 */
bool mcp_take(struct mcp_peer *peer, struct mcp_way *way,
	      const struct mcp_message *message, enum mcp_manner manner);
/*
 * Answer MESSAGE, which could not be read, or is not allowed, with DATA (borrowed, or NULL) beside
 * the sentence.
 */
void mcp_refuse(struct mcp *mcp, struct mcp_way *way, const struct mcp_message *message,
		int status, const struct err *why, const struct value *data);

/*
 * The schema of the tool that MESSAGE calls, when the tool has brought a schema of its
 * own; NULL: none.
 */
const struct value *mcp_schema_of_call(struct mcp *mcp, const struct mcp_message *message);

/* The version that a modern request names in its `_meta`; NULL: it names none. */
const char *mcp_modern_version(const struct mcp_message *message);
/* Can a handshake settle on VERSION? */
bool mcp_version_is_legacy(const char *version);

/* WAY is closed: cancel the requests that came by it. */
void mcp_way_gone(struct mcp *mcp, struct mcp_way *way);

/* A list has changed, such as the tools of the session: tell each client that wants to know. */
enum mcp_list { MCP_LIST_TOOLS, MCP_LIST_PROMPTS, MCP_LIST_RESOURCES };
void mcp_list_changed(struct mcp *mcp, enum mcp_list list);

/* The requests under way, begun or not, except those that only listen. */
size_t mcp_busy(const struct mcp *mcp);
/* Is the server full, so that it refuses further requests that may last? */
bool mcp_is_full(const struct mcp *mcp);
/*
 * May the answer to MESSAGE take long? All other requests are answered immediately, so
 * that a client can always ask whether the server lives, and cancel requests.
 */
bool mcp_may_last(const struct mcp_message *message);
/* Begin waiting requests, in the order of their arrival, as far as there is room. */
void mcp_begin_waiting(struct mcp *mcp);
/*
 * Tell listening clients, or only PEER unless it is NULL, that no more notices follow. WHY: the
 * sentence that is the last they hear, because they may not go on; NULL: the server ends gracefully.
 */
void mcp_goodbye(struct mcp *mcp, struct mcp_peer *peer, const char *why);
/*
 * Cancel all calls, or only those of PEER unless it is NULL. Their clients are answered: a
 * cancelled result with the sentence WHY, or for a request that has not begun an error with it.
 * mcp_is_quiet: no request is left that has or may get a call.
 */
void mcp_stop_calls(struct mcp *mcp, const struct mcp_peer *peer, const char *why);
bool mcp_is_quiet(const struct mcp *mcp);
/* The next result of a call has the sentence TEXT behind its content, once. */
void mcp_set_notice(struct mcp *mcp, const char *text);

/* The inside of the server, for src/mcp/server/ except its transports. */

/* Facts about a client, settled by a handshake or sent with each request. */
struct mcp_client {
	enum mcp_version version;
	bool form, url; /* the kinds of elicitation that it can show */
	bool sampling, roots;
	int log_level; /* lower levels are not sent; MCP_LOG_NONE: no message is */
};
/* The index of a syslog level by its name, debug being 0; -1: there is no such level. */
int mcp_log_level(const char *name);

struct mcp_peer {
	struct mcp *mcp;
	struct mcp_peer *next, *previous;
	struct mcp_way *way;
	struct mcp_client client;
	bool known;         /* it has sent initialize */
	char *session_hash; /* the first digits of a hash of its session's id; or NULL */
	struct value *watched; /* URIs it subscribed to, each as a key; or NULL */
};

/*
 * The life of a request, in its order; mcp_request_become changes it. Most requests are
 * answered by their method, and are over before another message is read.
 */
enum mcp_state {
	MCP_WAITS,   /* there is no room yet for it to begin */
	MCP_BEGUN,   /* its method has begun; the answer comes now or from its call */
	MCP_LISTENS, /* it stays open for notices */
	/*
	 * Modern era: it is answered with the questions of its call, which goes on. The
	 * call moves to the request that brings the answers.
	 */
	MCP_PARKED,
	/* It is answered or dropped. It is freed now, or after its call has ended. */
	MCP_OVER,
};

/* A request, from its message to its answer, and as long as its call runs. */
struct mcp_request {
	struct mcp *mcp;
	struct mcp_request *next, *previous;
	enum mcp_state state;
	/* These say where the answer goes. A parked request has them no longer. */
	struct mcp_peer *peer;
	struct mcp_way *way;
	struct value *id;
	struct mcp_request *next_here; /* the next request in the same slot of by_id */
	size_t bytes;                  /* of its message */
	const struct mcp_method *method;
	struct value *params; /* never NULL: an object */
	struct mcp_client client;
	struct mcp_call *call; /* begun, parked or over; NULL: it needs none */
	/* it listens: the changes that the client agreed to hear of */
	struct value *listens_to;
};

/*
 * REQUEST is now in STATE. One that becomes MCP_OVER without a call is freed, and so is
 * one that is over already and has lost its call.
 */
void mcp_request_become(struct mcp_request *request, enum mcp_state state);

struct mcp_method {
	const char *name;
	bool legacy, modern;
	/*
	 * how long its result is valid, in the modern era; < 0: the result does not say
	 */
	int ttl_ms;
	void (*run)(struct mcp_request *request);
	bool lasts; /* its answer may take long */
};

enum { MCP_RUN = 16 };

/*
 * The number of slots: when a client does not wait for answers, hundreds of requests are
 * under way.
 */
enum { MCP_SLOTS = 256 };

/* How much is under way, and how much may begin (mcp_begin_waiting). */
struct mcp_load {
	size_t busy;    /* the requests that wait or have begun */
	size_t waiting; /* of these, the ones that wait */
	size_t bytes;   /* of the messages of these, and of those that listen */
	struct mcp_request *first_waiting;
	size_t begun_max;   /* the most that have begun while further ones wait */
	struct timer stall; /* when no request has ended for so long, begun_max grows */
};

struct mcp {
	struct mcp_options options;
	char *instructions, *prompts, *version;
	struct session *session; /* NULL: not opened */
	bool tried;              /* opening the session was tried */
	struct err failure;      /* why the session could not be opened */
	struct mcp_peer *first_peer;
	struct mcp_request *first, *last;
	struct mcp_request *by_id[MCP_SLOTS];
	struct mcp_load load;
	struct mcp_call *by_number[MCP_SLOTS];
	struct mcp_call *first_due; /* they have ended, or were cancelled */
	uint64_t next_call, next_question;
	/* at the end of the loop's turn, ended calls are answered; due when one has ended */
	struct timer settling;
	struct buf out; /* one message */
	struct seal_key key;
	char run[MCP_RUN + 1];   /* tells this server from earlier ones */
	struct mcp_watch *watch; /* of the prompts' folder */
	struct value *outputs;   /* spill files: name -> path in the cell */
	char *notice;            /* of mcp_set_notice; NULL: none, or it was told */
};

/*
 * Answers, notices and requests of ours. Each of these ends the request, unless it is
 * parked.
 */
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
/*
 * This does not end a request: send a notice (ID NULL), or a request of ours under ID, by
 * WAY.
 */
void mcp_tell(struct mcp *mcp, struct mcp_way *way, const char *id, const char *method,
	      struct value *take_params);

/* Calls of tools (call.c). */
void mcp_tools_call(struct mcp_request *request);
struct event_sink mcp_calls_sink(struct mcp *mcp);
/* Answer with the output at PATH in the cell, the resource that the params name. */
void mcp_call_output(struct mcp_request *request, const char *path);
/* Answer calls that have ended. */
void mcp_calls_settle(struct mcp *mcp);
/* A client's response to a question of ours. */
void mcp_calls_answered(struct mcp_peer *peer, const struct mcp_message *message);
/* The client does not want the answer any more: its request is over, its call ends. */
void mcp_call_cancel(struct mcp_call *call);
/* Nobody waits for the answer to the open question of CALL: its client is told, if it was asked. */
void mcp_call_withdraw(struct mcp_call *call);
/* Cancel CALL, whose client still wants the answer: it has the sentence WHY behind its content. */
void mcp_call_stop(struct mcp_call *call, const char *why);
/* End all calls at the same time, with their requests. */
void mcp_calls_free(struct mcp *mcp);

/*
 * Questions to clients (call.c). One request to a client, as data: {method, params,
 * needed}. These functions know the capability that a request needs and its form on the
 * wire, and they check answers. They need no connection.
 */

/*
 * The questions of a call (EVENT_QUESTION's KIND and REQUEST) as requests by key, in
 * their order. *ONE: there is a single request, and its answer is expected without a key.
 * The caller frees the result.
 */
struct value *mcp_ask_requests(const char *kind, const struct value *request,
			       uint64_t number, bool *one);

/* Can CLIENT be asked REQUEST? */
bool mcp_ask_is_possible(const struct value *request, const struct mcp_client *client);
/* The capability that the client must have for REQUEST; NULL: REQUEST may be declined. */
const char *mcp_ask_needs(const struct value *request);

/*
 * {method, params} in the form on the wire. LEGACY: with the members that only older
 * versions want. The caller frees the result.
 */
struct value *mcp_ask_message(const struct value *request, bool legacy, const char *id);

/*
 * SAID, the client's answer to REQUEST, in the form that the call reads: {action,
 * content}. NULL: SAID is not an answer to REQUEST. The caller frees the result.
 */
struct value *mcp_ask_read_answer(const struct value *request, const struct value *said);

/*
 * Modern era: answer REQUEST with the requests TAKE_ASKED, by key. The client sends the
 * same request again, with the answers and with STATE, which is sealed for this method,
 * this name and, in a call, these arguments.
 */
void mcp_ask_answer(struct mcp_request *request, struct value *take_asked,
		    const char *state);
/* The state that REQUEST has brought back. False: it was not made here for REQUEST. */
bool mcp_ask_state(const struct mcp_request *request, struct str *state);

/* Resources (prompts.c). */
void mcp_resources_list(struct mcp_request *request);
void mcp_templates_list(struct mcp_request *request);
void mcp_resources_read(struct mcp_request *request);
void mcp_resources_subscribe(struct mcp_request *request);
void mcp_resources_unsubscribe(struct mcp_request *request);
/* The link to the spill file of RESULT; NULL: it has none. */
struct value *mcp_resource_of(struct mcp *mcp, const struct tool_result *result);

/* Prompts and completion (prompts.c). */
void mcp_prompts_list(struct mcp_request *request);
void mcp_prompts_get(struct mcp_request *request);
void mcp_complete(struct mcp_request *request);

/*
 * A prompt as a Markdown file (prompts.c). Front matter with `title`, `description` and
 * `arguments` may stand above the text. A row of `arguments` has name, description,
 * required and values; the values are proposed while somebody types. {{name}} in the text
 * is the argument's place. A line that is only an image, ![words](target), is replaced by
 * the whole target: a file beside the prompt, or a resource of the server by its URI.
 */

/*
 * TEXT as an object: name (NAME unless the front matter has one), title, description,
 * arguments, prompt. The caller frees it. ERR names what is wrong with TEXT.
 */
bool mcp_prompt_read(struct str text, const char *name, struct value **prompt,
		     struct err *err);

/* The row of `prompts/list`. The caller frees it. */
struct value *mcp_prompt_row(const struct value *prompt);

/*
 * The required arguments that ARGUMENTS does not have, as the schema of a form; NULL:
 * none.
 */
struct value *mcp_prompt_missing(const struct value *prompt, const struct value *arguments);

/*
 * The messages, with ARGUMENTS in their places. EMBED returns the content of TARGET, or
 * NULL. MADE: TARGET was made of an argument, so it may only be a URI. False: ERR says
 * what is missing.
 */
struct mcp_prompt_embed {
	struct value *(*content)(void *context, const char *target, bool made);
	void *context;
};
bool mcp_prompt_messages(const struct value *prompt, const struct value *arguments,
			 const struct mcp_prompt_embed *embed, struct value **messages,
			 struct err *err);

/* An array of values for the argument NAME that begin with TEXT. The caller frees it. */
struct value *mcp_prompt_proposals(const struct value *arguments, const char *name,
				   struct str text);
