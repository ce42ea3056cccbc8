/* remote_parts: the inside of the client's side. For remote*.c only. */
#pragma once
#include "mcp/client/remote.h"
#include "mcp/message.h"

#include <stdint.h>

enum {
	REMOTE_FAULTS_MAX = 1000,   /* lines that are nothing, and answers to nothing */
	REMOTE_LINE_MAX = 16 << 20, /* of what we send */
	REMOTE_NOTES_MAX = 2000, /* words of progress and logs of one call that are passed on */
};

enum remote_state {
	REMOTE_NEW,
	REMOTE_PROBES, /* has been asked by server/discover */
	REMOTE_GREETS, /* by initialize */
	REMOTE_LISTS,  /* by tools/list */
	REMOTE_READY,
	REMOTE_LOST,
};

/* A call of one of its tools. */
struct remote_call {
	struct remote_call *next;
	int64_t id; /* of the request, and its progress token; 0: not sent yet */
	char *name;
	struct running *running;
	size_t notes;
	size_t questions;       /* that it has asked */
	struct value *asked_id; /* of its request, while that is open (older era); or NULL */
	struct value *asked; /* key -> request, while they are open (newer era); or NULL */
	struct value *token; /* its requestState, to be sent back; or NULL */
};

/* A list of tools on its way, page by page. */
struct remote_list {
	int64_t request; /* its page that was asked for; 0: none is on its way */
	struct value *tools, *cursor;
	size_t pages, bytes;
};

struct remote {
	struct remote_options options;
	char *name;
	enum remote_state state;
	bool modern, served;
	int64_t last_id;
	int64_t asked; /* the id of what we wait for before it is ready; 0: nothing */
	struct timer patience;
	int64_t start_ms; /* until when it must have listed its tools */
	struct value *tools;
	struct remote_list list;
	bool tells_changes; /* it says when its tools change */
	bool list_again;    /* it said so since the list was asked for */
	size_t changes;     /* how often it has said so since then */
	int64_t listens; /* the request by which it tells them in the newer era; or 0 */
	struct timer relist;
	size_t faults;
	struct remote_call *calls;
};

/* Send a request; its id. PARAMS: an object, or NULL. */
int64_t remote_request(struct remote *remote, const char *method, struct value *take_params);
void remote_notify(struct remote *remote, const char *method, struct value *take_params);
/* One fault more; over the bound it is lost. */
void remote_fault(struct remote *remote);

/* It cannot be used any more: it WHATs, and says WORDS. */
void remote_give_up(struct remote *remote, const char *what, struct str words);
/* All is as it should be: its tools are known. */
void remote_settle(struct remote *remote);

/* remote_list.c: ask for its tools, from the first page on. */
void remote_list_begin(struct remote *remote);
/* An answer to that. */
void remote_listed(struct remote *remote, const struct mcp_message *message);
/* It says that they have changed. */
void remote_list_changed(struct remote *remote);
void remote_list_init(struct remote *remote);
void remote_list_fini(struct remote *remote);

/* remote_ask.c: it asks something (elicitation/create); true: and will be answered. */
bool remote_asked(struct remote *remote, const struct mcp_message *message);
/* CALL is answered by questions: true when they are asked, and the call is sent again. */
bool remote_call_asks(struct remote *remote, struct remote_call *call,
		      const struct value *result);
/* Free the questions that CALL holds. */
void remote_ask_fini(struct remote_call *call);

/* remote_call.c: send what has waited until it is ready. */
void remote_send_waiting(struct remote *remote);
/* The call of RUNNING, or NULL. */
struct remote_call *remote_call_find(const struct remote *remote,
				     const struct running *running);
/* Send CALL; MORE: members of its parameters, or NULL. */
void remote_call_send(struct remote *remote, struct remote_call *call,
		      struct value *take_more);
/* Send an answer of ours. */
void remote_reply(struct remote *remote, const struct value *id,
		  struct value *take_result, struct value *take_error);
/* An answer: true when it is one to a call. */
bool remote_call_answered(struct remote *remote, const struct mcp_message *message);
void remote_call_noted(struct remote *remote, const struct mcp_message *message);
void remote_calls_fail(struct remote *remote, const char *why);
