/* call: one call of a tool, from tools/call to its answer. For call*.c and question.c only. */
#pragma once
#include "mcp/server/mcp.h"

struct mcp_call {
	struct mcp *mcp;
	struct mcp_call *next, *previous;
	struct mcp_call *next_here; /* of those with numbers alike */
	struct mcp_call *next_done;
	bool is_due;                 /* it is in the list of those that are done */
	struct mcp_request *request; /* NULL: parked, or nobody wants its answer */
	struct running *running;     /* NULL: session_start has not returned */
	uint64_t number;
	char id[24]; /* of its events */
	char *tool;  /* as it was asked for */
	char *uri; /* the answer is the content of this resource; NULL: it is the tool's */
	struct mcp_client client;
	struct value *arguments; /* as they were given; NULL: none were */
	bool unknown;            /* there is no such tool */
	bool unwanted;           /* cancelled: what it says is dropped */

	struct value *token; /* of its progress; NULL: nobody asked */
	struct timer tick;
	int64_t began_ms, told_ms;
	double told; /* the last number that was told */
	bool counts; /* its tool may, by numbers of its own; the last one is */
	double counted;
	struct buf last_line; /* of its output */

	int64_t question; /* the runtime's number; 0: none is open */
	char *hash; /* of what a person is shown, for the answer (approval.h); NULL: none is wanted */
	uint64_t asked;         /* our own number of it */
	bool one;               /* the question is a single one, not several at once */
	struct value *requests; /* of it: key -> {method, params}; or NULL */
	struct value *answers;  /* key -> answer, as far as they have come */
	struct value *given; /* inputResponses that came before they were asked for; or NULL */
	struct timer parked; /* until when it waits for the client to come back */
};

/* By its number; NULL: it has ended. */
struct mcp_call *mcp_call_find(const struct mcp *mcp, uint64_t number);

/* question.c: an EVENT_QUESTION of CALL, or an EVENT_APPROVAL_WANTED. */
void mcp_question(struct mcp_call *call, const struct value *data);
/* The call is over: forget its questions. */
void mcp_question_end(struct mcp_call *call);
/*
 * A request that comes back with answers (inputResponses, requestState). *CALL: the one that
 * waits for them, now REQUEST's; NULL: a new one is to be begun, with *GIVEN, which is the
 * caller's. False: the request has been answered.
 */
bool mcp_question_resume(struct mcp_request *request, struct mcp_call **call,
			 struct value **given);

/*
 * call_result.c: RESULT, and LINK (or NULL) to the whole of its output, as the members of a result
 * of tools/call, for CLIENT.
 */
void mcp_result_add(const struct tool_result *result, const struct value *link,
		    const struct mcp_client *client, struct buf *out);

/* call_progress.c */
void mcp_progress_begin(struct mcp_call *call);
void mcp_progress_end(struct mcp_call *call);
void mcp_progress_output(struct mcp_call *call, struct str fragment);
void mcp_progress_event(struct mcp_call *call, const struct event *event);
