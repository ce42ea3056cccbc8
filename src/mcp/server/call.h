/*
 * call: one call of a tool, from tools/call to its answer.
 *
 * It holds the request and its `running` together and answers at the end of the loop's
 * turn. A question of the call (EVENT_QUESTION) becomes a request of ours, or parks
 * the call until its client comes back with the answers.
 */
#pragma once

#include "base/value.h"
#include "mcp/server/mcp.h"

#include <stdbool.h>
#include <stdint.h>

struct mcp_client;

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

/*
 * One request to a client, as data: {method, params, needed}. Knows the capability that
 * it needs and its form on the wire, and checks answers. Without a connection.
 */

/*
 * The questions of a call (EVENT_QUESTION's KIND and REQUEST) as requests by key, in
 * their order. *ONE: there is a single request, and its answer is expected without a key.
 * The caller frees the result.
 */
struct value *call_ask_requests(const char *kind, const struct value *request,
				uint64_t number, bool *one);

/* Can CLIENT be asked this? And if not, can the call do without? */
bool call_ask_is_possible(const struct value *request, const struct mcp_client *client);
bool call_ask_is_needed(const struct value *request);
/* The name of the client's capability that it takes. */
const char *call_ask_capability(const struct value *request);

/* {method, params} as it is sent; LEGACY gets what only older versions want. The caller's. */
struct value *call_ask_message(const struct value *request, bool legacy, const char *id);

/*
 * SAID, the client's answer to REQUEST, in the form that the call reads: {action,
 * content}. NULL: SAID is not an answer to REQUEST. The caller frees the result.
 */
struct value *call_ask_read_answer(const struct value *request, const struct value *said);
