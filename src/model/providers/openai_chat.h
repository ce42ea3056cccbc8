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
#define CHAT_EXTRA_FIELD "field"

/* Append `,"tools":[…]`, or nothing when there are none. */
void openai_chat_write_tools(const struct model_request *request, struct buf *body);

/*
 * What a model behind one of OpenAI's APIs takes, by its name: neither API has a way to
 * ask.
 */

enum openai_family {
	OPENAI_PLAIN, /* OpenAI's that do not reason: refuse what belongs to reasoning */
	OPENAI_REASONS, /* OpenAI's that do: refuse a temperature */
	OPENAI_OTHER,   /* of anybody else: take both */
};

/* The maker before a slash, as routers write it, may be there. */
enum openai_family openai_family_of(const char *model);
