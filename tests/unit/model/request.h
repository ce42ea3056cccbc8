/*
 * request: what the tests of the providers' request bodies have in common: a conversation to be
 * written, and the body as text and as what it says.
 */
#pragma once
#include "../base/unit.h"
#include "model/provider.h"

enum { BODY_MAX = 1 << 20 };

static const struct provider_settings plain = {.model = "m", .temperature = -1};

static inline struct value *json(const char *text)
{
	struct value *value = NULL;

	assert_true(value_parse(str_of(text), 0, &value, NULL));
	return value;
}

static inline void add_user(struct conversation *conversation, const char *text)
{
	(void)message_add_text(conversation_add(conversation, SPEAKER_USER), text);
}

/* BODY (initialised) as PROVIDER writes it; what it says, which the caller frees. */
static inline struct value *written(const struct provider *provider,
				    const struct provider_settings *settings,
				    const struct model_request *request, struct buf *body)
{
	struct value *parsed = NULL;
	struct err err = {0};

	assert_true(provider->request(settings, request, body, &err));
	if (!value_parse(buf_str(body), 0, &parsed, &err))
		fail_msg("%s: %s", err.text, body->data);
	return parsed;
}
