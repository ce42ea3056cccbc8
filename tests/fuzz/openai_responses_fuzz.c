/*
 * Fuzz target of model/openai_responses behind model/reader: the first byte is the size of
 * the pieces, the rest an HTTP answer. In pieces and at once it must come to the same
 * message or error. A message must go back as a request in which each call has a name, an
 * id and arguments that are an object, and which says the same when it is read again from
 * what the journal would keep.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/history.h"
#include "model/provider.h"
#include "model/stream.h"

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
	struct reader *reader = reader_new(&openai_provider, answer);
	bool ok = true, enough = false;

	for (size_t at = 0; ok && at < bytes.size; at += step)
		ok = reader_feed(reader, str_part(bytes, at, step), &enough, err);
	ok = ok && reader_end(reader, false, err) &&
	     answer_finish(answer, into, NULL, NULL, err);
	reader_free(reader);
	answer_free(answer);
	return ok;
}

/* The input that CONVERSATION makes; the caller's to free. */
static struct value *send_back(const struct conversation *conversation)
{
	struct provider_settings settings = {.model = "m", .temperature = 0.5};
	struct model_request request = {.conversation = conversation, .stop_fd = -1};
	auto_value struct value *parsed = NULL;
	struct value *input;
	struct buf body;

	buf_init(&body, BODY_MAX);
	check(openai_provider.request(&settings, &request, &body, NULL));
	check(value_parse(buf_str(&body), 0, &parsed, NULL));
	buf_fini(&body);
	input = value_ref(value_member(parsed, "input"));
	check(value_kind(input) == VALUE_ARRAY);
	return input;
}

static void check_items(const struct value *input)
{
	for (size_t i = 0; i < value_count(input); i++) {
		const struct value *item = value_item(input, i);
		auto_value struct value *arguments = NULL;

		check(value_kind(item) == VALUE_OBJECT);
		if (!str_is(value_str(value_member(item, "type")), "function_call"))
			continue;
		check(value_str(value_member(item, "call_id")).size > 0);
		check(value_kind(value_member(item, "name")) != VALUE_NULL);
		check(value_parse(value_str(value_member(item, "arguments")), 0,
				  &arguments, NULL));
		check(value_kind(arguments) == VALUE_OBJECT);
	}
}

/* What the session's record makes of the message goes back alike. */
static void check_record(const struct conversation *conversation, const struct value *input)
{
	auto_value struct value *data = history_message_value(&conversation->messages[0]);
	auto_value struct value *again = NULL;
	struct event event = {.kind = EVENT_MESSAGE, .data = data};
	struct history history;

	history_init(&history);
	check(history_event(&history, &event, NULL));
	again = send_back(&history.conversation);
	check(value_equal(again, input));
	history_fini(&history);
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
		check_items(one);
		check_record(&whole, one);
	} else {
		check(err.code == other.code && strcmp(err.text, other.text) == 0);
		check(err.code != 0 && err.text[0] != '\0');
	}
	conversation_fini(&whole);
	conversation_fini(&pieces);
	return 0;
}
