/*
 * Fuzz target of model/openai_chat behind model/reader: the first byte is the size of the
 * pieces, the rest an HTTP answer. In pieces and at once it must come to the same message
 * or error; a message must go back as a request that is JSON with arguments that are JSON.
 * The bytes are also read as an error body.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/failure.h"
#include "model/provider.h"
#include "model/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BODY_MAX = 64 << 20 };

static void check(bool holds)
{
	if (!holds)
		abort();
}

static bool play(struct str bytes, size_t step, struct conversation *into, struct err *err)
{
	struct answer *answer = answer_new(NULL);
	struct reader *reader = reader_new(&openai_chat_provider, answer);
	bool ok = true, enough = false;

	for (size_t at = 0; ok && at < bytes.size; at += step)
		ok = reader_feed(reader, str_part(bytes, at, step), &enough, err);
	ok = ok && reader_end(reader, false, err) &&
	     answer_finish(answer, into, NULL, NULL, err);
	reader_free(reader);
	answer_free(answer);
	return ok;
}

static void check_arguments(const struct value *message)
{
	const struct value *calls = value_member(message, "tool_calls");

	for (size_t i = 0; i < value_count(calls); i++) {
		const struct value *function =
			value_member(value_item(calls, i), "function");
		auto_value struct value *arguments = NULL;

		check(value_str(value_member(function, "name")).size > 0);
		check(value_parse(value_str(value_member(function, "arguments")), 0,
				  &arguments, NULL));
		check(value_kind(arguments) == VALUE_OBJECT);
	}
}

/* The conversation as a request body; the caller's to free. */
static struct value *send_back(const struct conversation *conversation)
{
	struct model_request request = {.conversation = conversation, .stop_fd = -1};
	struct value *parsed = NULL;
	struct buf body;

	buf_init(&body, BODY_MAX);
	check(openai_chat_provider.request("m", 0.5, &request, &body, NULL));
	check(value_parse(buf_str(&body), 0, &parsed, NULL));
	buf_fini(&body);
	check_arguments(value_item(value_member(parsed, "messages"), 0));
	return parsed;
}

static void read_error(struct str body)
{
	struct buf message, shown;

	buf_init(&message, BODY_MAX);
	buf_init(&shown, BODY_MAX);
	if (openai_chat_provider.error(body, &message))
		check(message.size > 0);
	failure_quote(buf_str(&message), &shown);
	check(shown.size <= FAILURE_QUOTE_MAX && !memchr(shown.data, '\n', shown.size));
	check(failure_code(400, buf_str(&message)) != 0);
	buf_fini(&message);
	buf_fini(&shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
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
	ok = play(bytes, size, &whole, &err);
	check(ok == play(bytes, (size_t)data[0] % 16 + 1, &pieces, &other));
	if (ok) {
		auto_value struct value *one = send_back(&whole);
		auto_value struct value *two = send_back(&pieces);

		check(value_equal(one, two));
	} else {
		check(err.code == other.code && strcmp(err.text, other.text) == 0);
		check(err.code != 0 && err.text[0] != '\0');
	}
	conversation_fini(&whole);
	conversation_fini(&pieces);
	read_error(bytes);
	return 0;
}
