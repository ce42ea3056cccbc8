/* lsp_message: messages in pieces, places in a text, and which errors are new. */
#include "extend/lsp/lsp_message.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void a_message_comes_in_pieces(void **state)
{
	const struct str text = STR("Content-Type: x\r\nCONTENT-length:  2 \r\n\r\n{}"
				    "Content-Length: 0\r\n\r\nContent-Length: 1\n\n7");
	struct lsp_reader reader;
	struct err err = {0};
	size_t count = 0;

	(void)state;
	lsp_reader_init(&reader);
	for (size_t i = 0; i < text.size; i++) {
		struct str piece = str_part(text, i, 1);

		if (lsp_reader_take(&reader, &piece, &err) != LSP_READ_WHOLE)
			continue;
		count++;
		assert_string_equal(reader.body.data, count == 1   ? "{}"
						      : count == 2 ? ""
								   : "7");
	}
	assert_int_equal(count, 3);
	lsp_reader_fini(&reader);
}

static void a_length_that_is_none_is_wrong(void **state)
{
	static const char *const heads[] = {
		"Content-Length: twelve\r\n\r\n",
		"Content-Length: -1\r\n\r\n",
		"Content-Length: 16777217\r\n\r\n",
		"Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
		"Content-Length:\r\n\r\n",
		"\r\n\r\n",
		"Length: 1\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct str bytes = str_of(heads[i]);
		struct lsp_reader reader;
		struct err err = {0};

		lsp_reader_init(&reader);
		assert_int_equal(lsp_reader_take(&reader, &bytes, &err), LSP_READ_WRONG);
		assert_true(err.text[0] != '\0');
		lsp_reader_fini(&reader);
	}
}

static void a_head_without_an_end_is_wrong(void **state)
{
	char many[LSP_HEAD_MAX + 1];
	struct str bytes = {many, sizeof(many)};
	struct lsp_reader reader;
	struct err err = {0};

	(void)state;
	memset(many, 'x', sizeof(many));
	lsp_reader_init(&reader);
	assert_int_equal(lsp_reader_take(&reader, &bytes, &err), LSP_READ_WRONG);
	lsp_reader_fini(&reader);
}

static void columns_are_characters(void **state)
{
	/* ä has two bytes and one unit, the other letter four bytes and two units. */
	const struct str text = STR("a\r\n\xc3\xa4\xf0\x9d\x94\xb8"
				    "b\n");

	(void)state;
	assert_int_equal(lsp_message_column(text, 1, 0, false), 1);
	assert_int_equal(lsp_message_column(text, 1, 1, false), 2);
	assert_int_equal(lsp_message_column(text, 1, 3, false), 3);
	assert_int_equal(lsp_message_column(text, 1, 6, true), 3);
	assert_int_equal(lsp_message_column(text, 1, 99, false), 4);
	assert_int_equal(lsp_message_column(text, 0, 99, false), 2);
	assert_int_equal(lsp_message_column(text, 9, 5, false), 1);
	assert_int_equal(lsp_message_units(text, 1, 3, false), 3);
	assert_int_equal(lsp_message_units(text, 1, 3, true), 6);
	assert_int_equal(lsp_message_units(text, 1, 99, false), 4);
}

/* Which of the errors AFTER are new? As letters. */
static void assert_new(const char *before, const char *before_text, const char *after,
		       const char *after_text, const char *wanted)
{
	struct lsp_findings lists[2];
	const char *const texts[] = {before, after};
	bool is_new[8];
	char letters[9] = "";

	for (size_t i = 0; i < 2; i++) {
		auto_value struct value *params = NULL;
		struct err err = {0};
		struct str uri;
		int64_t version;

		if (!value_parse(str_of(texts[i]), 0, &params, &err))
			fail_msg("%s", err.text);
		assert_true(lsp_findings_read(params, &uri, &version, &lists[i]));
		assert_true(str_is(uri, "file:///a"));
		assert_int_equal(version, i == 0 ? -1 : 7);
	}
	lsp_findings_compare(&lists[0], str_of(before_text), &lists[1],
			     str_of(after_text), is_new);
	for (size_t i = 0; i < lists[1].count; i++)
		letters[i] = is_new[i] ? 'n' : 'o';
	assert_string_equal(letters, wanted);
	lsp_findings_fini(&lists[0]);
	lsp_findings_fini(&lists[1]);
}

#define AT(line, text)                              \
	"{\"range\": {\"start\": {\"line\": " #line \
	", \"character\": 0}}, \"message\": \"" text "\"}"
#define WARNING(text) "{\"severity\": 2, \"message\": \"" text "\"}"
#define BEFORE(items) "{\"uri\": \"file:///a\", \"diagnostics\": [" items "]}"
#define AFTER(items) \
	"{\"uri\": \"file:///a\", \"version\": 7, \"diagnostics\": [" items "]}"

static void an_error_that_has_moved_is_old(void **state)
{
	(void)state;
	assert_new(BEFORE(AT(0, "x")), "bad\n", AFTER(AT(1, "x")), "more\nbad\n", "o");
	/* The one in the line with the same text is the old one. */
	assert_new(BEFORE(AT(0, "x")), "bad\n", AFTER(AT(0, "x") "," AT(1, "x")),
		   "worse\nbad\n", "no");
	/* The line itself was changed, and it is still wrong. */
	assert_new(BEFORE(AT(0, "x")), "bad\n", AFTER(AT(0, "x")), "other\n", "o");
	assert_new(BEFORE(AT(0, "x")), "bad\n", AFTER(AT(0, "y")), "bad\n", "n");
}

static void a_warning_is_no_error(void **state)
{
	(void)state;
	assert_new(BEFORE(""), "", AFTER(WARNING("x")), "", "o");
	assert_new(BEFORE(WARNING("x")), "", AFTER(AT(0, "x")), "", "n");
}

static void answers_are_lines(void **state)
{
	static const char text[] =
		"[{\"uri\": \"file:///w/a%20b.c\", \"range\": {\"start\": {\"line\": 2, "
		"\"character\": 4}}}, {\"uri\": \"untitled:1\"}, 7]";
	auto_value struct value *list = NULL;
	struct buf out;

	(void)state;
	assert_true(value_parse(STR(text), 0, &list, NULL));
	buf_init(&out, LSP_TEXT_MAX);
	lsp_message_places(list, "/w", &out);
	assert_string_equal(out.data, "a b.c:3:5\n");
	buf_clear(&out);
	lsp_message_places(value_item(list, 0), "/", &out);
	assert_string_equal(out.data, "w/a b.c:3:5\n");
	buf_clear(&out);
	lsp_message_places(NULL, "/", &out);
	lsp_message_symbols(NULL, &out);
	assert_int_equal(out.size, 0);
	buf_fini(&out);
}

static void a_file_has_a_language(void **state)
{
	(void)state;
	assert_string_equal(lsp_message_language("/w/a.tsx"), "typescriptreact");
	assert_string_equal(lsp_message_language("/w.c/Makefile"), "plaintext");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_comes_in_pieces),
		cmocka_unit_test(a_length_that_is_none_is_wrong),
		cmocka_unit_test(a_head_without_an_end_is_wrong),
		cmocka_unit_test(columns_are_characters),
		cmocka_unit_test(an_error_that_has_moved_is_old),
		cmocka_unit_test(a_warning_is_no_error),
		cmocka_unit_test(answers_are_lines),
		cmocka_unit_test(a_file_has_a_language),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
