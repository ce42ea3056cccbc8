/* request: what the requests of all APIs have in common. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "model/conversation.h"
#include "model/model.h"

#include <stdbool.h>
#include <stdint.h>

bool request_is_blank(const char *text);

/*
 * Append the arguments of CALL, which may be no JSON at all, as a JSON object: services read
 * them again and fail on anything else. What the model wrote wrong stays readable.
 */
void request_add_arguments(const struct part *call, struct buf *out);

/*
 * Append the calls of MESSAGE, if it has any, as the member "tool_calls" of a message of Chat
 * Completions: each an object with its id, then FIELDS, then its function, whose arguments
 * ARGUMENTS appends, then what its `extra` holds under KEPT, by that name (NULL: nothing).
 */
void request_add_calls(const struct message *message, const char *fields, const char *kept,
		       void (*arguments)(const struct part *call, struct buf *out),
		       struct buf *out);

/* The schema of TOOL, or one that takes nothing. */
void request_add_schema(const struct model_tool *tool, struct buf *out);

/* The text of a result: never blank, which some refuse and which puzzles most models. */
const char *request_result_text(const struct part *part);

/*
 * The effort ("low", "medium", "high") that a BUDGET of tokens to think with means, for APIs
 * that take a word: up to 2,048 it is little, above 8,192 much. All models that take one
 * know these three.
 */
const char *request_effort(uint64_t budget);

/* False (E2BIG) when BODY went over its ceiling. */
bool request_fits(const struct buf *body, struct err *err);
