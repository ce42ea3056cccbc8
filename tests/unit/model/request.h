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

/*
 * Add the call "c1" of read_file, and its result: TEXT with a PNG of three bytes and a JPEG
 * of one.
 */
static inline void add_pictures(struct conversation *conversation, const char *text)
{
	struct message *message = conversation_add(conversation, SPEAKER_MODEL);

	(void)message_add_call(message, "c1", "read_file", "{}");
	message = conversation_add(conversation, SPEAKER_USER);
	message_add_result(message, "c1", "read_file", text, false)->pictures = json(
		"[{\"type\":\"image\",\"data\":\"iVBO\",\"mimeType\":\"image/png\"},"
		"{\"type\":\"image\",\"data\":\"/w==\",\"mimeType\":\"image/jpeg\"}]");
}

static const struct provider_settings seeing = {
	.model = "m",
	.temperature = -1,
	.sees = true,
};

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

/*
 * A conversation with pictures as PROVIDER writes it for a model that sees must have EXPECTED, JSON, as its
 * member KEY. For any other model no byte of a picture may be in it.
 */
/* Give the newest text of the user a picture of its own. */
static inline void add_own_picture(struct conversation *conversation)
{
	struct message *last = &conversation->messages[conversation->message_count - 1];

	last->parts[last->part_count - 1].pictures =
		json("[{\"mimeType\":\"image/gif\",\"data\":\"R0lG\"}]");
}

static inline void check_pictures(const struct provider *provider, const char *key,
				  const char *expected)
{
	struct conversation conversation;
	struct model_request request = {.conversation = &conversation, .stop_fd = -1};
	auto_value struct value *wanted = json(expected);
	auto_value struct value *seen = NULL;
	struct buf body;

	conversation_init(&conversation);
	add_user(&conversation, "look");
	add_pictures(&conversation, "a.png: PNG");
	add_user(&conversation, "and?");
	add_own_picture(&conversation);
	buf_init(&body, BODY_MAX);
	seen = written(provider, &seeing, &request, &body);
	if (!value_equal(value_member(seen, key), wanted))
		fail_msg("%s", body.data);
	buf_clear(&body);
	value_free(written(provider, &plain, &request, &body));
	assert_true(str_find(buf_str(&body), STR("iVBO"), 0) == (size_t)-1);
	assert_true(str_find(buf_str(&body), STR("R0lG"), 0) == (size_t)-1);
	assert_true(str_find(buf_str(&body), STR("a.png: PNG"), 0) != (size_t)-1);
	buf_fini(&body);
	conversation_fini(&conversation);
}
