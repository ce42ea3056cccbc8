/* openai_chat: what its files share: reading answers and errors, writing requests. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "model/model.h"

#include <stdbool.h>

/*
 * Names in a thinking part's `extra`: the message field its text came in and goes back
 * in, and OpenRouter's list of details, which goes back instead of the text.
 */
#define CHAT_EXTRA_FIELD   "field"
#define CHAT_EXTRA_DETAILS "reasoning_details"

/* The fields in which servers send reasoning as text, in the order of preference. */
extern const char *const chat_reasoning_fields[]; /* NULL ends it */

bool openai_chat_write(const char *model, double temperature,
		       const struct model_request *request, struct buf *body,
		       struct err *err);

/*
 * The first of OBJECT's members named by KEYS (NULL ends them) that is a text with
 * something in it.
 */
struct str openai_chat_first_text(const struct value *object, const char *const *keys);

/* Is ROOT, which came as an answer or an event of one, an error? */
bool openai_chat_is_error(const struct value *root);
/* ERR from it. Always false. */
bool openai_chat_refuse(const struct value *root, struct err *err);
/* Provider's `error`. */
bool openai_chat_error(struct str body, struct buf *out);

/* Join the pieces of the reasoning details in a thinking's EXTRA. */
void openai_chat_settle_details(struct value *extra);
