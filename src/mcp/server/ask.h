/*
 * ask: one request to a client, as data: {method, params, needed}. Knows the capability
 * that it needs and its form on the wire, and checks answers. Without a connection.
 */
#pragma once
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

struct mcp_client;

/*
 * The questions of a call (EVENT_QUESTION's KIND and REQUEST) as requests by key, in
 * their order. *ONE: there is a single request, and its answer is expected without a key.
 * The caller frees the result.
 */
struct value *ask_requests(const char *kind, const struct value *request, uint64_t number,
			   bool *one);

/* Can CLIENT be asked this? And if not, can the call do without? */
bool ask_is_possible(const struct value *request, const struct mcp_client *client);
bool ask_is_needed(const struct value *request);
/* The name of the client's capability that it takes. */
const char *ask_capability(const struct value *request);

/* {method, params} as it is sent; LEGACY gets what only older versions want. The caller's. */
struct value *ask_message(const struct value *request, bool legacy, const char *id);

/*
 * SAID, the client's answer to REQUEST, in the form that the call reads: {action,
 * content}. NULL: SAID is not an answer to REQUEST. The caller frees the result.
 */
struct value *ask_read_answer(const struct value *request, const struct value *said);
