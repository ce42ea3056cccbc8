/*
 * elicitation: what a tool asks of the person by a form or an address (EVENT_QUESTION) as
 * requests `elicitation/create` of the protocol, and the client's answers to these. Pure.
 *
 *	elicitation = acp_elicitation_new(event, kinds);
 *	while ((params = acp_elicitation_next(elicitation, &method)) != NULL) {
 *		… ask the client …
 *		if (!acp_elicitation_take(elicitation, result, &why))
 *			… tell the person why the answer was declined …
 *	}
 *	line = acp_elicitation_answer(elicitation);
 *	acp_elicitation_free(elicitation);
 *
 * A server's wish that the model be asked (kind "sampling", mcp/client/sampling.h) is a
 * permission (`session/request_permission`), because it is a yes for this once or a no.
 *
 * A question of several is asked one by one. A question that the client does not take, or
 * that the protocol cannot say, is declined and not asked. The protocol knows fields of texts,
 * numbers, flags and choices; an answer must fit the whole schema of the tool.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>

/* The kinds of questions that a client takes (ClientCapabilities.elicitation). */
enum acp_elicits { ACP_ELICITS_FORMS = 1, ACP_ELICITS_ADDRESSES = 2 };

enum {
	ACP_ELICITATION_FIELDS = 32,       /* of one form */
	ACP_ELICITATION_CONTENT = 1 << 20, /* bytes of the answer to one form */
};

struct acp_elicitation;

/* EVENT, an EVENT_QUESTION as an object, is copied. KINDS: of enum acp_elicits. */
struct acp_elicitation *acp_elicitation_new(const struct value *event, unsigned kinds);
void acp_elicitation_free(struct acp_elicitation *elicitation); /* NULL is fine */

/* The id of the call that asks; borrowed. */
const char *acp_elicitation_call(const struct acp_elicitation *elicitation);

/*
 * The params of the next request, without the session, and its *METHOD; the caller frees them.
 * NULL: all was asked, and acp_elicitation_answer has the answer.
 */
struct value *acp_elicitation_next(struct acp_elicitation *elicitation, const char **method);

/*
 * RESULT is the client's result of the request; NULL: the client has answered with an error.
 * False: the question is declined, because RESULT is no answer or does not fit, and WHY is a
 * sentence about it.
 */
bool acp_elicitation_take(struct acp_elicitation *elicitation, const struct value *result,
			  struct err *why);

/* The line for the process (process.h) that answers the question; the caller frees it. */
struct value *acp_elicitation_answer(const struct acp_elicitation *elicitation);
