/*
 * provider: what the fuzz targets of providers share. The first byte is the size of the
 * pieces, the rest an HTTP answer. In pieces and at once it must come to the same message
 * or error; a message must go back as a request that is JSON, and the same one, of which
 * the target looks at what its API wants. The bytes are also read as an error body.
 */
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/failure.h"
#include "model/provider.h"
#include "model/stream.h"

enum { FUZZ_BODY_MAX = 64 << 20 };

static inline void fuzz_check(bool holds)
{
	if (!holds)
		abort();
}

static inline bool fuzz_play(const struct provider *provider, struct str bytes,
			     size_t step, struct conversation *into, struct err *err)
{
	struct answer *answer = answer_new(NULL);
	struct reader *reader = reader_new(provider, answer);
	bool ok = true, enough = false;

	for (size_t at = 0; ok && at < bytes.size; at += step)
		ok = reader_feed(reader, str_part(bytes, at, step), &enough, err);
	ok = ok && reader_end(reader, false, err) &&
	     answer_finish(answer, into, NULL, NULL, err);
	reader_free(reader);
	answer_free(answer);
	return ok;
}

/* The conversation as a request body; the caller's to free. */
static inline struct value *fuzz_send_back(const struct provider *provider,
					   const struct conversation *conversation)
{
	struct provider_settings settings = {.model = "m", .temperature = 0.5};
	struct model_request request = {.conversation = conversation, .stop_fd = -1};
	struct value *parsed = NULL;
	struct buf body;

	buf_init(&body, FUZZ_BODY_MAX);
	fuzz_check(provider->request(&settings, &request, &body, NULL));
	fuzz_check(value_parse(buf_str(&body), 0, &parsed, NULL));
	buf_fini(&body);
	return parsed;
}

static inline void fuzz_read_error(const struct provider *provider, struct str body)
{
	struct buf message, shown;

	buf_init(&message, FUZZ_BODY_MAX);
	buf_init(&shown, FUZZ_BODY_MAX);
	if (provider->error(body, &message))
		fuzz_check(message.size > 0);
	failure_quote(buf_str(&message), &shown);
	fuzz_check(shown.size <= FAILURE_QUOTE_MAX && !memchr(shown.data, '\n', shown.size));
	fuzz_check(failure_code(400, buf_str(&message)) != 0);
	buf_fini(&message);
	buf_fini(&shown);
}

static inline int fuzz_provider(const struct provider *provider, const uint8_t *data,
				size_t size, void (*look)(const struct value *request))
{
	struct str bytes;
	struct conversation whole, pieces;
	struct err err = {0}, other = {0};
	bool ok;

	if (size == 0)
		return 0;
	bytes = (struct str){(const char *)data + 1, size - 1};
	conversation_init(&whole);
	conversation_init(&pieces);
	ok = fuzz_play(provider, bytes, size, &whole, &err);
	fuzz_check(ok ==
		   fuzz_play(provider, bytes, (size_t)data[0] % 16 + 1, &pieces, &other));
	if (ok) {
		auto_value struct value *one = fuzz_send_back(provider, &whole);
		auto_value struct value *two = fuzz_send_back(provider, &pieces);

		fuzz_check(value_equal(one, two));
		look(one);
	} else {
		fuzz_check(err.code == other.code && strcmp(err.text, other.text) == 0);
		fuzz_check(err.code != 0 && err.text[0] != '\0');
	}
	conversation_fini(&whole);
	conversation_fini(&pieces);
	fuzz_read_error(provider, bytes);
	return 0;
}
