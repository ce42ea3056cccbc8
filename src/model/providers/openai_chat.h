/* openai_chat: what its files share: reading answers, writing requests. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "model/provider.h"

#include <stdbool.h>

/*
 * Names in a thinking part's `extra`: the message field its text came in and goes back
 * in, and OpenRouter's list of details, which goes back instead of the text.
 */
#define CHAT_EXTRA_FIELD   "field"
#define CHAT_EXTRA_DETAILS "reasoning_details"

/* In a call's `extra`, and beside its function: what Gemini wants back, signatures of thoughts. */
#define CHAT_EXTRA_CALL "extra_content"

/* The fields in which servers send reasoning as text, in the order of preference. */
extern const char *const chat_reasoning_fields[]; /* NULL ends it */

bool openai_chat_write(const struct provider_settings *settings,
		       const struct model_request *request, struct buf *body,
		       struct err *err);

/* Append `,"tools":[…]`, or nothing when there are none. */
void openai_chat_write_tools(const struct model_request *request, struct buf *body);

/* Join the pieces of the reasoning details in a thinking's EXTRA. */
void openai_chat_settle_details(struct value *extra);
