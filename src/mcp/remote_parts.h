/* remote_parts: the inside of the client's side. For remote*.c only. */
#pragma once
#include "mcp/message.h"
#include "mcp/remote.h"

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
};

struct remote {
	struct remote_options options;
	char *name;
	enum remote_state state;
	bool modern, served;
	int64_t last_id;
	int64_t asked; /* the id of what we wait for before it is ready; 0: nothing */
	struct timer patience;
	struct value *tools;
	struct value *cursor; /* of the page that was asked for */
	size_t pages, list_bytes, faults;
	struct remote_call *calls;
};

/* Send a request; its id. PARAMS: an object, or NULL. */
int64_t remote_request(struct remote *remote, const char *method, struct value *take_params);
void remote_notify(struct remote *remote, const char *method, struct value *take_params);
/* One fault more; over the bound it is lost. */
void remote_fault(struct remote *remote);

/* remote_call.c: send what has waited until it is ready. */
void remote_send_waiting(struct remote *remote);
/* An answer: true when it is one to a call. */
bool remote_call_answered(struct remote *remote, const struct mcp_message *message);
void remote_call_noted(struct remote *remote, const struct mcp_message *message);
void remote_calls_fail(struct remote *remote, const char *why);
