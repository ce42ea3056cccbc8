/*
 * ask: one thing asked of a client, as data: {method, params, needed}; what it takes of the
 * client, how it looks on the wire, and whether an answer is one. Without a connection.
 */
#pragma once
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

struct mcp_client;

/*
 * What a call asks (EVENT_QUESTION's KIND and REQUEST) as requests by key, in their order. *ONE:
 * it is a single one, whose answer is to come by itself. The caller's.
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
 * What a client said to it, as the call will read it: {action, content}. NULL: that is no
 * answer to this. The caller's.
 */
struct value *ask_read_answer(const struct value *request, const struct value *said);
