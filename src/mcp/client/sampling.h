/*
 * sampling: a server's wish that the model of the agent be asked something
 * (sampling/createMessage), as a question to the person, and what becomes of it as an answer
 * to the server. Pure.
 *
 * The question (EVENT_QUESTION, kind CALL_ASK_SAMPLING) has a `message`, which says what
 * the server wants; `text`, all that the model would be sent, as a person can read it;
 * and the parts of it for the model: `system` (or absent), `messages`, a list of {model,
 * text} where `model` is true for words of a model, and `tokens`, the most that the
 * answer may have. The answer, in the place of an accepted form, has the result of the
 * protocol as its content, else perhaps `why` in its content.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"

enum {
	SAMPLING_TEXT_MAX = 24 << 10, /* bytes of all texts: a person reads them */
	SAMPLING_MESSAGES_MAX = 64,
};

#define SAMPLING_METHOD "sampling/createMessage"

/*
 * PARAMS of the server NAME as a question; the caller frees it. NULL: it is refused, and WHY
 * is a sentence for the server. Only texts are taken, and no tools.
 */
struct value *sampling_question(const char *name, const struct value *params,
				struct err *why);

/* The result for the server in ANSWER, borrowed; NULL: it was refused, and WHY says why. */
struct value *sampling_result(const struct value *answer, struct err *why);
