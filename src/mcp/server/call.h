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
	/* the next of the calls in the same slot of by_number */
	struct mcp_call *next_here;
	struct mcp_call *next_done;
	/* it is in the list of calls whose answers are due */
	bool is_due;
	/* NULL: the call is parked, or nobody wants its answer */
	struct mcp_request *request;
	struct running *running; /* NULL: session_start has not returned */
	uint64_t number;
	char id[24]; /* of its events */
	char *tool;  /* the name that was asked for */
	/* the answer is the content of this resource; NULL: it is the tool's result */
	char *uri;
	struct mcp_client client;
	struct value *arguments; /* as they were given; NULL: none were */
	bool unknown;            /* there is no such tool */
	bool unwanted;           /* cancelled: its output is dropped */

	struct value *token; /* for its progress; NULL: nobody asked for notices */
	struct timer tick;
	int64_t began_ms, told_ms;
	double told; /* the last number that was sent */
	bool counts; /* its tool counts itself; `counted` is its last number */
	double counted;
	struct buf last_line; /* of its output */

	int64_t question; /* the runtime's number; 0: none is open */
	/*
	 * the hash of an approval that a person is shown, for the answer (approval.h); or
	 * NULL
	 */
	char *hash;
	uint64_t asked; /* our own number of the question */
	/* there is a single question, not several at the same time */
	bool one;
	struct value *requests; /* of the question: key -> {method, params}; or NULL */
	struct value *answers;  /* key -> answer, for the answers that have come */
	struct value *given; /* inputResponses that came before the question; or NULL */
	struct timer parked; /* how long the call waits for its client to come back */
};

/*
 * One request to a client, as data: {method, params, needed}. These functions know the
 * capability that a request needs and its form on the wire, and they check answers. They
 * need no connection.
 */

/*
 * The questions of a call (EVENT_QUESTION's KIND and REQUEST) as requests by key, in
 * their order. *ONE: there is a single request, and its answer is expected without a key.
 * The caller frees the result.
 */
struct value *call_ask_requests(const char *kind, const struct value *request,
				uint64_t number, bool *one);

/* Can CLIENT be asked REQUEST? And if not, must the call fail? */
bool call_ask_is_possible(const struct value *request, const struct mcp_client *client);
bool call_ask_is_needed(const struct value *request);
/* The name of the client's capability that REQUEST needs. */
const char *call_ask_capability(const struct value *request);

/*
 * {method, params} in the form on the wire. LEGACY: with the members that only older
 * versions want. The caller frees the result.
 */
struct value *call_ask_message(const struct value *request, bool legacy, const char *id);

/*
 * SAID, the client's answer to REQUEST, in the form that the call reads: {action,
 * content}. NULL: SAID is not an answer to REQUEST. The caller frees the result.
 */
struct value *call_ask_read_answer(const struct value *request, const struct value *said);
