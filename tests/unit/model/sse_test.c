/* Tests of model/sse. */
#include "../base/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "model/stream.h"

struct log {
	struct buf text;
	size_t refuse_at; /* the event that is refused, counted from 1 */
	size_t events;
};

static bool note(void *context, struct str name, struct str data, struct err *err)
{
	struct log *log = context;

	if (++log->events == log->refuse_at)
		return err_set(err, ECANCELED, "enough");
	(void)buf_addf(&log->text, "<%.*s|%.*s>", (int)name.size, name.data,
		       (int)data.size, data.data);
	return true;
}

static void check_in_pieces(const char *stream, const char *expected, size_t step)
{
	struct log log = {0};
	struct sse *sse = sse_new(note, &log);
	struct str bytes = str_of(stream);

	buf_init(&log.text, 10000);
	for (size_t at = 0; at < bytes.size; at += step)
		assert_true(sse_feed(sse, str_part(bytes, at, step), NULL));
	assert_true(sse_end(sse, NULL));
	assert_string_equal(log.text.data, expected);
	buf_fini(&log.text);
	sse_free(sse);
}

static void check(const char *stream, const char *expected)
{
	for (size_t step = 1; step <= strlen(stream) + 1; step++)
		check_in_pieces(stream, expected, step);
}

static void events_end_with_a_blank_line(void **state)
{
	(void)state;
	check("data: a\n\ndata: b\n\n", "<|a><|b>");
	check("data: a\n\n\n\ndata: b\n\n", "<|a><|b>");
	check("event: x\ndata: a\n\ndata: b\n\n", "<x|a><|b>");
	check("event: x\n\ndata: b\n\n", "<|b>");
}

static void all_three_line_ends_count(void **state)
{
	(void)state;
	check("data: a\r\n\r\ndata: b\r\n\r\n", "<|a><|b>");
	check("data: a\r\rdata: b\r\r", "<|a><|b>");
	check("data: a\r\n\ndata: b\n\r\n", "<|a><|b>");
	check("data: a\r\ndata: b\n\rdata: c\n\n", "<|a\nb><|c>");
}

static void data_lines_are_joined(void **state)
{
	(void)state;
	check("data: a\ndata: b\n\n", "<|a\nb>");
	check("data\ndata\n\n", "<|\n>");
	check("data:\n\n", "<|>");
	check("data:a\ndata:  b\n\n", "<|a\n b>");
	check("data: a: b\n\n", "<|a: b>");
}

static void comments_and_other_fields_are_skipped(void **state)
{
	(void)state;
	check(": hi\n\ndata: a\n: mid\nid: 3\nretry: 5\nfoo\n\n:\n", "<|a>");
	check(":data: x\n\ndata: a\n\n", "<|a>");
	check("database: x\n\ndata: a\n\n", "<|a>");
}

static void a_bom_is_skipped_once(void **state)
{
	(void)state;
	check("\xef\xbb\xbf"
	      "data: a\n\ndata: b\n\n",
	      "<|a><|b>");
	check("data: a\n\n\xef\xbb\xbf"
	      "data: b\n\n",
	      "<|a>");
}

static void the_last_blank_line_may_be_missing_after_whole_json(void **state)
{
	(void)state;
	check("data: {\"a\":1}", "<|{\"a\":1}>");
	check("data: {\"a\":1}\n", "<|{\"a\":1}>");
	check("data: [DONE]", "<|[DONE]>");
	check("data: {\"a\":", "");
	check("data: hello\n", "");
	check("dat", "");
}

static void a_refusal_ends_it(void **state)
{
	struct log log = {.refuse_at = 2};
	struct sse *sse = sse_new(note, &log);
	struct err err = {0};

	(void)state;
	buf_init(&log.text, 100);
	assert_false(sse_feed(sse, STR("data: a\n\ndata: b\n\ndata: c\n\n"), &err));
	assert_int_equal(err.code, ECANCELED);
	assert_int_equal(log.events, 2);
	buf_fini(&log.text);
	sse_free(sse);
}

static void too_long_an_event_is_refused_and_a_long_comment_is_not(void **state)
{
	struct log log = {0};
	struct sse *sse = sse_new(note, &log);
	struct str piece = {calloc(1, 1 << 20), 1 << 20};
	struct err err = {0};
	bool ok = true;
	int fed = 0;

	(void)state;
	assert_non_null(piece.data);
	buf_init(&log.text, 100);
	assert_true(sse_feed(sse, STR(":"), NULL));
	for (int i = 0; i < 40; i++)
		assert_true(sse_feed(sse, piece, NULL));
	assert_true(sse_feed(sse, STR("\ndata:"), NULL));
	for (; ok && fed < 40; fed++)
		ok = sse_feed(sse, piece, &err);
	assert_int_equal(fed, 16);
	assert_int_equal(err.code, EIO);
	buf_fini(&log.text);
	sse_free(sse);
	sse_free(NULL);
	free((void *)(uintptr_t)piece.data);
}

static void an_event_has_an_id_when_it_is_whole(void **state)
{
	struct log log = {0};
	struct sse *sse = sse_new(note, &log);

	(void)state;
	buf_init(&log.text, 100);
	assert_int_equal(sse_retry_ms(sse), -1);
	assert_true(sse_feed(sse, STR("id: a\nretry: 250\ndata: x\n"), NULL));
	assert_string_equal(sse_last_id(sse), "");
	assert_true(sse_feed(sse, STR("\ndata: y\n\nretry: soon\n"), NULL));
	assert_string_equal(sse_last_id(sse), "a");
	assert_int_equal(sse_retry_ms(sse), 250);
	assert_true(sse_feed(sse, (struct str){"id: b\0c\n\nid: d", 14}, NULL));
	assert_string_equal(sse_last_id(sse), "a");
	assert_true(sse_feed(sse, STR("\n\n"), NULL));
	assert_string_equal(sse_last_id(sse), "d");
	assert_true(sse_feed(sse, STR("id:\n\n"), NULL));
	assert_string_equal(sse_last_id(sse), "");
	buf_fini(&log.text);
	sse_free(sse);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_end_with_a_blank_line),
		cmocka_unit_test(all_three_line_ends_count),
		cmocka_unit_test(data_lines_are_joined),
		cmocka_unit_test(comments_and_other_fields_are_skipped),
		cmocka_unit_test(a_bom_is_skipped_once),
		cmocka_unit_test(the_last_blank_line_may_be_missing_after_whole_json),
		cmocka_unit_test(a_refusal_ends_it),
		cmocka_unit_test(an_event_has_an_id_when_it_is_whole),
		cmocka_unit_test(too_long_an_event_is_refused_and_a_long_comment_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
