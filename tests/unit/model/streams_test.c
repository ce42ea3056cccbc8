/*
 * Plays the recorded answers in tests/model/streams: NAME.sse is the body of an HTTP
 * answer as some server sends it, NAME.json what is to come out of it: text, thinking,
 * calls, finish, usage and extra (what goes back with the thinking), or the code of an
 * error and a part of what it says. Each is cut at every byte and must give the same.
 */
#include "../base/unit.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "model/provider.h"
#include "model/stream.h"
#include "places.h"

enum {
	STREAM_MAX = 1 << 20,
	PATH_BYTES = 4096,
	/* Pieces of all sizes up to this … */
	PIECE_MAX = 16,
	/*
	 * … and for shorter ones two pieces, cut anywhere: that takes the square of it.
	 */
	CUT_EVERYWHERE_MAX = 2500,
};

static const struct {
	int code;
	const char *name;
} codes[] = {
	{EACCES, "EACCES"},   {EAGAIN, "EAGAIN"}, {EBADMSG, "EBADMSG"},
	{EBUSY, "EBUSY"},     {EINVAL, "EINVAL"}, {EPROTO, "EPROTO"},
	{ENODATA, "ENODATA"}, {E2BIG, "E2BIG"},   {EIO, "EIO"},
};

static const char *const finishes[] = {
	[MODEL_FINISH_STOP] = "stop",     [MODEL_FINISH_CALLS] = "calls",
	[MODEL_FINISH_LENGTH] = "length", [MODEL_FINISH_REFUSED] = "refused",
	[MODEL_FINISH_PAUSED] = "paused",
};

static struct value *value_of_part(const struct part *part)
{
	struct value *call = value_new_object();

	value_set_text(call, "id", part->call_id);
	value_set_text(call, "tool", part->tool);
	value_set_text(call, "arguments", part->arguments);
	return call;
}

/* The parts as they stand, each with what it keeps. */
static struct value *value_of_parts(const struct message *message)
{
	static const char *const kinds[] = {"text", "thinking", "call"};
	struct value *parts = value_new_array();

	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];
		struct value *shown = part->kind == PART_CALL ? value_of_part(part)
							      : value_new_object();

		assert_true((size_t)part->kind < UNIT_COUNT(kinds));
		value_set_text(shown, "kind", kinds[part->kind]);
		if (part->kind != PART_CALL)
			value_set_text(shown, "text", part->text);
		if (part->extra)
			value_set(shown, "extra", value_ref(part->extra));
		value_append(parts, shown);
	}
	return parts;
}

static struct value *value_of_message(const struct message *message)
{
	struct value *result = value_new_object();

	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];

		assert_int_not_equal(part->kind, PART_RESULT);
		if (part->kind == PART_CALL) {
			if (!value_member(result, "calls"))
				value_set(result, "calls", value_new_array());
			value_append(value_member(result, "calls"), value_of_part(part));
			continue;
		}
		assert_null(value_member(result,
					 part->kind == PART_TEXT ? "text" : "thinking"));
		value_set_text(result, part->kind == PART_TEXT ? "text" : "thinking",
			       part->text);
		if (part->extra)
			value_set(result, "extra", value_ref(part->extra));
	}
	return result;
}

static void add_usage(struct value *result, const struct model_usage *usage)
{
	struct value *counts;

	if (usage->input == 0 && usage->output == 0 && usage->cached == 0)
		return;
	counts = value_new_object();
	value_set_integer(counts, "input", (int64_t)usage->input);
	value_set_integer(counts, "output", (int64_t)usage->output);
	value_set_integer(counts, "cached", (int64_t)usage->cached);
	if (usage->cache_writes > 0)
		value_set_integer(counts, "cache_writes", (int64_t)usage->cache_writes);
	if (usage->reasoning > 0)
		value_set_integer(counts, "reasoning", (int64_t)usage->reasoning);
	value_set(result, "usage", counts);
}

static struct value *value_of_error(const struct err *err)
{
	struct value *result = value_new_object();

	value_set_integer(result, "error", err->code);
	for (size_t i = 0; i < UNIT_COUNT(codes); i++) {
		if (codes[i].code == err->code)
			value_set_text(result, "error", codes[i].name);
	}
	value_set_text(result, "says", err->text);
	return result;
}

static const struct provider *provider_of(const struct value *expected)
{
	struct str name = value_str(value_member(expected, "provider"));

	if (name.size == 0)
		return &openai_chat_provider;
	for (size_t i = 0; providers[i]; i++) {
		if (str_is(name, providers[i]->name))
			return providers[i];
	}
	fail_msg("no provider is called %.*s", (int)name.size, name.data);
	return NULL;
}

/* How CONVERSATION, the answer alone, goes back: the member KEY of the next request. */
static struct value *send_back(const struct provider *provider, const char *key,
			       const struct conversation *conversation)
{
	struct provider_settings settings = {.model = "m", .temperature = -1};
	struct model_request request = {.conversation = conversation, .stop_fd = -1};
	auto_value struct value *parsed = NULL;
	struct buf body;

	buf_init(&body, STREAM_MAX);
	assert_true(provider->request(&settings, &request, &body, NULL));
	assert_true(value_parse(buf_str(&body), 0, &parsed, NULL));
	buf_fini(&body);
	return value_ref(value_member(parsed, key));
}

/* The message as EXPECTED wants it shown: part by part, and what goes back of it, or not. */
static struct value *value_of_answer(const struct conversation *conversation,
				     const struct value *expected)
{
	const struct message *message = &conversation->messages[0];
	static const char *const back[] = {"input", "messages"};
	struct value *result;

	if (value_member(expected, "parts")) {
		result = value_new_object();
		value_set(result, "parts", value_of_parts(message));
	} else {
		result = value_of_message(message);
	}
	for (size_t i = 0; i < UNIT_COUNT(back); i++) {
		if (value_member(expected, back[i]))
			value_set(result, back[i],
				  send_back(provider_of(expected), back[i], conversation));
	}
	if (value_member(expected, "provider"))
		value_set(result, "provider", value_ref(value_member(expected, "provider")));
	return result;
}

/*
 * What comes out of BYTES when they arrive as FIRST bytes, then in pieces of STEP, shown as
 * in EXPECTED.
 */
static struct value *play(struct str bytes, size_t first, size_t step,
			  const struct value *expected)
{
	struct conversation conversation;
	struct answer *answer = answer_new(NULL);
	struct reader *reader = reader_new(provider_of(expected), answer);
	enum model_finish finish = MODEL_FINISH_STOP;
	struct model_usage usage = {0};
	struct err err = {0};
	struct value *result;
	bool ok = true, enough = false;

	conversation_init(&conversation);
	for (size_t at = 0, size = first; ok && at < bytes.size; at += size, size = step)
		ok = reader_feed(reader, str_part(bytes, at, size), &enough, &err);
	ok = ok && reader_end(reader, false, &err) &&
	     answer_finish(answer, &conversation, &finish, &usage, &err);
	if (ok) {
		assert_int_equal(conversation.message_count, 1);
		result = value_of_answer(&conversation, expected);
		value_set_text(result, "finish", finishes[finish]);
		add_usage(result, &usage);
	} else {
		assert_int_equal(conversation.message_count, 0);
		result = value_of_error(&err);
	}
	reader_free(reader);
	answer_free(answer);
	conversation_fini(&conversation);
	return result;
}

/* Error texts are held against a part only. */
static bool is_as_expected(const struct value *result, const struct value *expected)
{
	struct str says = value_str(value_member(expected, "says"));

	if (!value_member(expected, "error"))
		return value_equal(result, expected);
	return value_equal(value_member(result, "error"), value_member(expected, "error")) &&
	       says.size > 0 &&
	       str_find(value_str(value_member(result, "says")), says, 0) != (size_t)-1;
}

static bool check(const char *name, struct str bytes, size_t first, size_t step,
		  const struct value *expected)
{
	auto_value struct value *result = play(bytes, first, step, expected);
	struct buf shown;

	if (is_as_expected(result, expected))
		return true;
	buf_init(&shown, STREAM_MAX);
	(void)value_print(result, VALUE_PRETTY, &shown);
	print_error("%s, %zu bytes then pieces of %zu:\n%s\n", name, first, step,
		    shown.data);
	buf_fini(&shown);
	return false;
}

static bool play_file(const char *name, bool everywhere)
{
	char path[PATH_BYTES];
	struct buf bytes, text;
	struct err err = {0};
	auto_value struct value *expected = NULL;
	struct str whole;
	bool ok;

	buf_init(&bytes, STREAM_MAX);
	buf_init(&text, STREAM_MAX);
	(void)snprintf(path, sizeof(path), "%s/%s.sse", place_of_streams, name);
	assert_true(fd_read_file(path, STREAM_MAX, &bytes, &err));
	(void)snprintf(path, sizeof(path), "%s/%s.json", place_of_streams, name);
	assert_true(fd_read_file(path, STREAM_MAX, &text, &err));
	assert_true(value_parse(buf_str(&text), 0, &expected, &err));

	whole = buf_str(&bytes);
	ok = check(name, whole, whole.size + 1, 1, expected);
	for (size_t step = 1; everywhere && ok && step <= PIECE_MAX; step++)
		ok = check(name, whole, step, step, expected);
	for (size_t cut = 1;
	     everywhere && ok && whole.size <= CUT_EVERYWHERE_MAX && cut < whole.size; cut++)
		ok = check(name, whole, cut, whole.size, expected);
	buf_fini(&bytes);
	buf_fini(&text);
	return ok;
}

static void play_all(bool everywhere)
{
	DIR *folder = opendir(place_of_streams);
	struct dirent *entry;
	size_t played = 0, failed = 0;

	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		char name[sizeof(entry->d_name)];
		char *dot;

		(void)snprintf(name, sizeof(name), "%s", entry->d_name);
		dot = strrchr(name, '.');
		if (!dot || strcmp(dot, ".sse") != 0)
			continue;
		*dot = '\0';
		failed += play_file(name, everywhere) ? 0 : 1;
		played++;
	}
	(void)closedir(folder);
	assert_true(played > 50);
	assert_int_equal(failed, 0);
}

static void every_recorded_stream_is_understood(void **state)
{
	(void)state;
	play_all(false);
}

static void a_cut_at_any_byte_changes_nothing(void **state)
{
	(void)state;
	play_all(true);
}

static void a_broken_connection_is_no_end(void **state)
{
	static const char call[] =
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\","
		"\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\n\n";
	struct answer *answer = answer_new(NULL);
	struct reader *reader = reader_new(&openai_chat_provider, answer);
	struct err err = {0};
	bool enough;

	(void)state;
	assert_true(reader_feed(reader, str_of(call), &enough, &err));
	assert_false(enough);
	assert_false(reader_end(reader, true, &err));
	assert_int_equal(err.code, EPROTO);
	reader_free(reader);
	answer_free(answer);
}

static void the_closing_word_is_enough(void **state)
{
	struct answer *answer = answer_new(NULL);
	struct reader *reader = reader_new(&openai_chat_provider, answer);
	bool enough;

	(void)state;
	assert_true(reader_feed(reader, STR("data: [DONE]\n"), &enough, NULL));
	assert_false(enough);
	assert_true(reader_feed(reader, STR("\n"), &enough, NULL));
	assert_true(enough);
	reader_free(reader);
	answer_free(answer);
}

static void an_endless_answer_is_refused(void **state)
{
	enum { PIECE = 1 << 20 };
	char *piece = malloc(PIECE + 100);
	struct answer *answer = answer_new(NULL);
	struct reader *reader = reader_new(&openai_chat_provider, answer);
	struct err err = {0};
	bool enough, ok = true;
	int fed = 0;

	(void)state;
	assert_non_null(piece);
	(void)snprintf(piece, 100, "data: {\"choices\":[{\"delta\":{\"content\":\"");
	memset(piece + strlen(piece), 'x', PIECE);
	memcpy(piece + PIECE, "\"}}]}\n\n", 8);
	for (; ok && fed < 100; fed++)
		ok = reader_feed(reader, str_of(piece), &enough, &err);
	assert_false(ok);
	assert_int_equal(err.code, EIO);
	assert_true(fed <= 18);
	reader_free(reader);
	answer_free(answer);
	free(piece);
}

static void what_is_kept_of_an_endless_answer_is_counted(void **state)
{
	enum { PIECE = 1 << 20 };
	static const char begin[] = "data: {\"type\":\"content_block_start\",\"index\":0,"
				    "\"content_block\":{\"type\":\"thinking\"}}\n\n";
	char *piece = malloc(PIECE + 200);
	struct answer *answer = answer_new(NULL);
	struct reader *reader = reader_new(&anthropic_provider, answer);
	struct err err = {0};
	bool enough, ok = true;
	int fed = 0;

	(void)state;
	assert_non_null(piece);
	(void)snprintf(piece, 200,
		       "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"
		       "{\"type\":\"signature_delta\",\"signature\":\"");
	memset(piece + strlen(piece), 'x', PIECE);
	memcpy(piece + PIECE, "\"}}\n\n", 6);
	for (; ok && fed < 100; fed++)
		ok = reader_feed(reader, str_of(begin), &enough, &err) &&
		     reader_feed(reader, str_of(piece), &enough, &err);
	assert_false(ok);
	assert_int_equal(err.code, EIO);
	assert_true(fed <= 18);
	reader_free(reader);
	answer_free(answer);
	free(piece);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_recorded_stream_is_understood),
		cmocka_unit_test(a_cut_at_any_byte_changes_nothing),
		cmocka_unit_test(a_broken_connection_is_no_end),
		cmocka_unit_test(the_closing_word_is_enough),
		cmocka_unit_test(an_endless_answer_is_refused),
		cmocka_unit_test(what_is_kept_of_an_endless_answer_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
