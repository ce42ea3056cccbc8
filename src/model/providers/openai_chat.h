/* openai_chat: the parts of Chat Completions that other providers use as well. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "model/provider.h"

#include <stdbool.h>

/*
 * Names in a thinking part's `extra`: the message field in which the text of the thinking
 * came and goes back, and OpenRouter's list of details, which goes back instead of the
 * text.
 */
#define CHAT_EXTRA_FIELD "field"

/* Append `,"tools":[…]`, or nothing when there are none. */
void openai_chat_write_tools(const struct model_request *request, struct buf *body);

/*
 * The parameters that a model behind one of OpenAI's APIs takes, by its name, because
 * neither API has a way to ask for them.
 */

enum openai_family {
	/* OpenAI's models that do not reason: they refuse parameters of reasoning */
	OPENAI_PLAIN,
	OPENAI_REASONS, /* OpenAI's models that reason: they refuse a temperature */
	OPENAI_OTHER,   /* models of other makers: they take both */
};

/* MODEL may have its maker before a slash, as routers write it. */
enum openai_family openai_family_of(const char *model);
