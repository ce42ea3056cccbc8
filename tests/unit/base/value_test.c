/* Tests of base/value. */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/value.h"

static struct value *parsed(const char *text, unsigned flags)
{
	struct value *value = NULL;
	struct err err;

	if (!value_parse(str_of(text), flags, &value, &err))
		fail_msg("%s: %s", text, err.text);
	return value;
}

static void assert_prints(const struct value *value, unsigned flags, const char *text)
{
	struct buf buf;

	buf_init(&buf, 10000);
	assert_true(value_print(value, flags, &buf));
	assert_string_equal(buf.data, text);
	buf_fini(&buf);
}

static void every_kind_is_read_and_printed(void **state)
{
	static const char text[] =
		"{\"z\":null,\"a\":[true,false,-0,12,-9223372036854775808,1.5,1e300,\"\"],"
		"\"\":{\"x\":\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001é🦊\"}}";
	auto_value struct value *value = parsed(text, 0);
	auto_value struct value *sorted = parsed("{\"b\":1,\"a\":{\"d\":2,\"c\":[]}}", 0);

	(void)state;
	assert_prints(value, 0,
		      "{\"z\":null,\"a\":[true,false,0,12,-9223372036854775808,1.5,1e+300,\"\"],"
		      "\"\":{\"x\":\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001é🦊\"}}");
	assert_prints(sorted, VALUE_SORTED, "{\"a\":{\"c\":[],\"d\":2},\"b\":1}");
	assert_prints(sorted, VALUE_PRETTY,
		      "{\n  \"b\": 1,\n  \"a\": {\n    \"d\": 2,\n    \"c\": []\n  }\n}");
}

static void members_keep_the_order_of_the_text(void **state)
{
	auto_value struct value *value = value_new_object();
	char key[16];
	int expected = 0;

	(void)state;
	/* Enough to make any hash table grow several times. */
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(key, sizeof(key), "k%d", (i * 7919) % 1000);
		value_set_integer(value, key, i);
	}
	for (void *at = value_first(value); at; at = value_next(value, at))
		assert_int_equal(value_integer(value_at(at)), expected++);
	assert_int_equal(expected, 1000);
}

static void wrong_texts_are_explained(void **state)
{
	static const struct {
		const char *text;
		const char *why;
	} cases[] = {
		{"", "line 1, column 1: expected a value at the end of the text"},
		{"  \n ", "line 2, column 2: expected a value at the end of the text"},
		{"{\"a\": 1\n \"b\": 2}",
		 "line 2, column 2: expected ',' or '}' near \"\\\"b\\\": 2}\""},
		{"[1 2]", "line 1, column 4: expected ',' or ']' near \"2]\""},
		{"[1,]", "line 1, column 4: a comma with nothing after it near \"]\""},
		{"{\"a\":1,}", "line 1, column 8: a comma with nothing after it near \"}\""},
		{"{a:1}", "line 1, column 2: expected a key in double quotes near \"a:1}\""},
		{"{\"a\" 1}", "line 1, column 6: expected ':' after the key near \"1}\""},
		{"{\"é\":x}", "line 1, column 6: expected a value near \"x}\""},
		{"[1] x", "line 1, column 5: expected the end of the text near \"x\""},
		{"tru", "line 1, column 1: expected a value near \"tru\""},
		{"truex", "line 1, column 5: expected the end of the text near \"x\""},
		{"NaN", "line 1, column 1: expected a value near \"NaN\""},
		{"'a'", "line 1, column 1: expected a value near \"'a'\""},
		{"\"abc",
		 "line 1, column 1: a string without its closing quote near \"\\\"abc\""},
		{"\"a\nb\"",
		 "line 1, column 3: a line end inside a string; write \\n near \"\\nb\\\"\""},
		{"\"a\tb\"",
		 "line 1, column 3: a control byte inside a string near \"\\tb\\\"\""},
		{"\"\\x\"",
		 "line 1, column 2: an escape JSON does not have near \"\\\\x\\\"\""},
		{"\"\\u12g4\"",
		 "line 1, column 2: expected four hex digits after \\u near \"\\\\u12g4\\\"\""},
		{"\"\\ud800\"",
		 "line 1, column 2: half of a surrogate pair near \"\\\\ud800\\\"\""},
		{"\"\\udc00\\ud800\"",
		 "line 1, column 2: half of a surrogate pair near \"\\\\udc00\\\\ud800\\\"\""},
		{"\"a\xff\"",
		 "line 1, column 3: bytes that are not UTF-8 near \"\xef\xbf\xbd\\\"\""},
		{"01", "line 1, column 1: a number with a leading zero near \"01\""},
		{"-", "line 1, column 2: expected a digit at the end of the text"},
		{"+1", "line 1, column 1: expected a value near \"+1\""},
		{"1.",
		 "line 1, column 3: expected a digit after the point at the end of the text"},
		{"1e",
		 "line 1, column 3: expected a digit of the exponent at the end of the text"},
		{".5", "line 1, column 1: expected a value near \".5\""},
		{"[/**/1]", "line 1, column 2: expected a value near \"/**/1]\""},
		{"[1", "line 1, column 3: expected ',' or ']' at the end of the text"},
	};
	struct value *untouched = NULL;
	struct err err;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		assert_false(value_parse(str_of(cases[i].text), 0, &untouched, &err));
		assert_string_equal(err.text, cases[i].why);
		assert_int_equal(err.code, EINVAL);
		assert_null(untouched);
		assert_false(value_parse(str_of(cases[i].text), 0, &untouched, NULL));
	}
}

static void what_only_the_values_show_is_explained_too(void **state)
{
	static const char *const cases[][2] = {
		{"{\"a\":1,\"a\":2}", "the key occurs twice in its object"},
		{"[9223372036854775808]", "a number that does not fit 64 bits"},
		{"-9223372036854775809", "a number that does not fit 64 bits"},
		{"1e999", "a number that does not fit 64 bits"},
		{"{\"a\\u0000b\":1}", "a key with \\u0000 in it"},
	};
	struct value *value = NULL;
	struct err err;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		assert_false(value_parse(str_of(cases[i][0]), 0, &value, &err));
		assert_non_null(strstr(err.text, cases[i][1]));
		assert_non_null(strstr(err.text, "line 1, column "));
		assert_null(value);
	}
	assert_false(value_parse(STR("[1]\0"), 0, &value, &err));
	assert_non_null(strstr(err.text, "expected the end of the text"));
	/* A byte order mark is no blank. */
	assert_false(value_parse(STR("\xef\xbb\xbf{}"), 0, &value, &err));
}

static void sentences_repeat_little_of_the_text(void **state)
{
	static char text[100000];
	struct value *value = NULL;
	struct err err;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	assert_false(value_parse(str_of(text), 0, &value, &err));
	assert_true(strlen(err.text) < 200);
	memset(text, 1, sizeof(text) - 1);
	assert_false(value_parse(str_of(text), 0, &value, &err));
	assert_true(strlen(err.text) < 400);
}

static void depth_has_a_ceiling(void **state)
{
	char text[2 * VALUE_DEPTH_MAX + 3] = "";
	struct value *value = NULL;
	struct err err;

	(void)state;
	memset(text, '[', VALUE_DEPTH_MAX);
	memset(text + VALUE_DEPTH_MAX, ']', VALUE_DEPTH_MAX);
	assert_true(value_parse(str_of(text), 0, &value, &err));
	value_free(value);
	value = NULL;
	memset(text, '[', VALUE_DEPTH_MAX + 1);
	memset(text + VALUE_DEPTH_MAX + 1, ']', VALUE_DEPTH_MAX + 1);
	assert_false(value_parse(str_of(text), 0, &value, &err));
	assert_non_null(strstr(err.text, "column 129: nested deeper than 128 levels"));
	/* Brackets in strings do not count. */
	memset(text, '[', sizeof(text) - 1);
	text[0] = text[sizeof(text) - 2] = '"';
	assert_true(value_parse(str_of(text), 0, &value, &err));
	value_free(value);
}

static void texts_over_the_ceiling_are_refused_unread(void **state)
{
	struct value *value = NULL;
	struct err err;

	(void)state;
	assert_false(value_parse((struct str){"", (size_t)VALUE_TEXT_MAX + 1}, 0, &value,
				 &err));
	assert_int_equal(err.code, EFBIG);
}

static void comments_and_trailing_commas_in_configuration(void **state)
{
	auto_value struct value *value =
		parsed("// head\r\n{ /* a { \" */ \"a\": \"// no /* comment\", // \"b\": 1\n"
		       "\"c\": [1, 2, /* last */ ], }\n// end",
		       VALUE_COMMENTS);
	struct value *none = NULL;
	struct err err;

	(void)state;
	assert_prints(value, 0, "{\"a\":\"// no /* comment\",\"c\":[1,2]}");
	assert_false(value_parse(STR("{} /* open"), VALUE_COMMENTS, &none, &err));
	assert_string_equal(err.text,
			    "line 1, column 4: a comment without end near \"/* open\"");
	assert_false(value_parse(STR("[1,,]"), VALUE_COMMENTS, &none, &err));
	assert_false(value_parse(STR("[,]"), VALUE_COMMENTS, &none, &err));
	assert_false(value_parse(STR("{,}"), VALUE_COMMENTS, &none, &err));
	assert_false(value_parse(STR("[1],"), VALUE_COMMENTS, &none, &err));
	assert_false(value_parse(STR("[1] / 2"), VALUE_COMMENTS, &none, &err));
	assert_false(value_parse(STR("/*/"), VALUE_COMMENTS, &none, &err));
	/* Positions are those of the text as it is written. */
	assert_false(value_parse(STR("/* two\nlines */ [1, /* é */ x]"), VALUE_COMMENTS,
				 &none, &err));
	assert_string_equal(err.text, "line 2, column 23: expected a value near \"x]\"");
}

static void a_models_words_are_repaired_where_nothing_is_lost(void **state)
{
	auto_value struct value *fenced =
		parsed("\n```json\n{\"a\": [1, ], }\n```\n", VALUE_REPAIR);
	auto_value struct value *plain = parsed("```\n[]\n```", VALUE_REPAIR);
	static const char *const refused[] = {"```json\n{\"a\": 1}",
					      "{\"a\": \"half",
					      "```",
					      "``````",
					      "```json\n{\"a\": 1\n```",
					      "{\"a\": 1} // no",
					      "{\"a\": 1,, }",
					      "{\"a\":,}"};
	struct value *none = NULL;

	(void)state;
	auto_value struct value *halves =
		parsed("[\"\\ud83d\", \"\\udca1\\ud83d\\udca1\", \"\\\\ud83d\\\\\\ud83d\\n\"]",
		       VALUE_HALVES);

	assert_prints(halves, 0,
		      "[\"\xef\xbf\xbd\",\"\xef\xbf\xbd\xf0\x9f\x92\xa1\","
		      "\"\\\\ud83d\\\\\xef\xbf\xbd\\n\"]");
	assert_prints(fenced, 0, "{\"a\":[1]}");
	assert_prints(plain, 0, "[]");
	for (size_t i = 0; i < UNIT_COUNT(refused); i++)
		assert_false(value_parse(str_of(refused[i]), VALUE_REPAIR, &none, NULL));
	assert_false(value_parse(STR("[1,]"), 0, &none, NULL));
	assert_null(none);
}

static void integers_beyond_64_bits_become_reals_where_that_is_wanted(void **state)
{
	static const struct {
		const char *text, *wanted;
	} cases[] = {
		{"[9223372036854775807, -9223372036854775808, 5, 18446744073709551616]",
		 "[9223372036854775807,-9223372036854775808,5,1.84467440737095516e19]"},
		{"[9223372036854775808]", "[9.2233720368547758e18]"},
		{"[-9223372036854775809]", "[-9.2233720368547758e18]"},
		{"[\"18446744073709551616\", 100000000000000000000]",
		 "[\"18446744073709551616\",1e20]"},
		{"[0.18446744073709551616, 100000000000000000000]",
		 "[0.18446744073709551616,1e20]"},
		{"[1e+10, 100000000000000000000]", "[1e10,1e20]"},
		{"100000000000000000000", "1e20"},
	};
	static const char *const refused[] = {"[1e999, 1]",
					      "[00000000000000000000000]",
					      "[100000000000000000000",
					      "[100000000000000000000.]",
					      "[-]",
					      "[\"100000000000000000000"};
	struct value *none = NULL;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		auto_value struct value *value = parsed(cases[i].text, VALUE_WIDE);
		auto_value struct value *wanted = parsed(cases[i].wanted, 0);

		assert_true(value_equal(value, wanted));
	}
	for (size_t i = 0; i < UNIT_COUNT(refused); i++)
		assert_false(value_parse(str_of(refused[i]), VALUE_WIDE, &none, NULL));
	assert_null(none);
}

static void a_text_that_is_searched_may_be_loose(void **state)
{
	static const struct {
		const char *text, *wanted;
	} cases[] = {
		{"[1e999,-1e400,1e309]", "[1e308,-1e308,1e308]"},
		{"{\"a\":\"\\ud83d\",\"b\":1e400}", "{\"a\":\"\\ufffd\",\"b\":1e308}"},
		{"[100000000000000000000,1e1,\"1e999\",1e999 ]",
		 "[1e20,1e1,\"1e999\",1e308]"},
		{"1e999", "1e308"},
	};
	static const char *const refused[] = {"[1e999", "{\"a\":1,\"a\":2}", "[1e999.]",
					      "[-]"};
	struct value *none = NULL;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		auto_value struct value *value = parsed(cases[i].text, VALUE_SEARCHED);
		auto_value struct value *wanted = parsed(cases[i].wanted, 0);

		assert_true(value_equal(value, wanted));
	}
	for (size_t i = 0; i < UNIT_COUNT(refused); i++)
		assert_false(value_parse(str_of(refused[i]), VALUE_SEARCHED, &none, NULL));
	auto_value struct value *last = parsed("{\"a\":1,\"b\":2,\"a\":[3]}", VALUE_LAST);
	assert_prints(last, 0, "{\"a\":[3],\"b\":2}");
}

static void readers_of_the_wrong_kind_give_the_empty_answer(void **state)
{
	auto_value struct value *array =
		parsed("[1.9, -1.9, 1e300, -1e300, \"t\", true, 7]", 0);

	(void)state;
	assert_int_equal(value_kind(NULL), VALUE_NULL);
	assert_null(value_text(NULL));
	assert_null(value_text(array));
	assert_int_equal(value_str(NULL).size, 0);
	assert_int_equal(value_integer(NULL), 0);
	assert_true(value_number(array) == 0);
	assert_false(value_is_true(NULL));
	assert_false(value_is_number(NULL));
	assert_int_equal(value_count(NULL), 0);
	assert_null(value_item(NULL, 0));
	assert_null(value_item(array, 7));
	assert_null(value_member(array, "a"));
	assert_null(value_member(NULL, "a"));
	assert_null(value_first(array));
	assert_null(value_first(NULL));
	assert_int_equal(value_integer(value_item(array, 0)), 1);
	assert_int_equal(value_integer(value_item(array, 1)), -1);
	assert_true(value_integer(value_item(array, 2)) == INT64_MAX);
	assert_true(value_integer(value_item(array, 3)) == INT64_MIN);
	assert_int_equal(value_integer(value_item(array, 4)), 0);
	assert_true(value_is_true(value_item(array, 5)));
	assert_true(value_number(value_item(array, 6)) == 7);
	value_free(NULL);
}

static void kinds_have_names(void **state)
{
	(void)state;
	assert_string_equal(value_kind_name(VALUE_NULL), "null");
	assert_string_equal(value_kind_name(VALUE_BOOLEAN), "boolean");
	assert_string_equal(value_kind_name(VALUE_INTEGER), "integer");
	assert_string_equal(value_kind_name(VALUE_REAL), "number");
	assert_string_equal(value_kind_name(VALUE_STRING), "string");
	assert_string_equal(value_kind_name(VALUE_ARRAY), "array");
	assert_string_equal(value_kind_name(VALUE_OBJECT), "object");
}

static void strings_may_hold_nul(void **state)
{
	auto_value struct value *value = parsed("\"a\\u0000b\"", 0);

	(void)state;
	assert_true(str_equal(value_str(value), STR("a\0b")));
	assert_prints(value, 0, "\"a\\u0000b\"");
}

static void equality_as_in_json_schema(void **state)
{
	static const struct {
		const char *a, *b;
		bool equal;
	} cases[] = {
		{"1", "1.0", true},
		{"0", "-0.0", true},
		{"1", "1.5", false},
		{"9007199254740993", "9007199254740992.0", false},
		{"9223372036854775807", "9223372036854775808.0", false},
		{"1e300", "5", false},
		{"1", "true", false},
		{"true", "false", false},
		{"null", "null", true},
		{"null", "false", false},
		{"\"a\"", "\"a\"", true},
		{"\"a\"", "\"a\\u0000\"", false},
		{"[1,2]", "[1.0,2]", true},
		{"[1,2]", "[2,1]", false},
		{"[1]", "[1,2]", false},
		{"{\"a\":1,\"b\":2}", "{\"b\":2.0,\"a\":1}", true},
		{"{\"a\":1}", "{\"b\":1}", false},
		{"{\"a\":1}", "{\"a\":2}", false},
		{"{\"a\":null}", "{\"b\":null}", false},
		{"{}", "[]", false},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		auto_value struct value *a = parsed(cases[i].a, 0);
		auto_value struct value *b = parsed(cases[i].b, 0);

		assert_int_equal(value_equal(a, b), cases[i].equal);
		assert_int_equal(value_equal(b, a), cases[i].equal);
		assert_true(value_equal(a, a));
	}
	assert_true(value_equal(NULL, NULL));
}

static void builders_mend_what_json_cannot_hold(void **state)
{
	auto_value struct value *object = value_new_object();

	(void)state;
	value_set_text(object, "text",
		       "a\xff\xfe"
		       "b\xc3");
	value_set_text(object, "none", NULL);
	value_set_str(object, "key\xff", STR("x\0y"));
	value_set_real(object, "nan", (double)NAN);
	value_set_real(object, "inf", (double)INFINITY);
	value_set(object, "null", NULL);
	assert_prints(object, 0,
		      "{\"text\":\"a\xef\xbf\xbd\xef\xbf\xbd"
		      "b\xef\xbf\xbd\",\"none\":null,"
		      "\"key\xef\xbf\xbd\":\"x\\u0000y\",\"nan\":null,\"inf\":null,\"null\":null}");
}

static void builders_make_every_kind(void **state)
{
	const char *const texts[] = {"x", "", NULL};
	auto_value struct value *object = value_new_object();
	struct value *array = value_new_array();

	(void)state;
	value_append(array, value_new_integer(INT64_MIN));
	value_append(array, value_new_boolean(true));
	value_append(array, value_new_null());
	value_append(array, NULL);
	value_set(object, "array", array);
	value_set(object, "texts", value_new_texts(texts));
	value_set(object, "no", value_new_texts(texts + 2));
	value_set_boolean(object, "b", false);
	value_set_real(object, "r", 0.1);
	value_set_real(object, "whole", 3);
	value_set_integer(object, "gone", 1);
	value_set_integer(object, "b2", 1);
	value_set_integer(object, "b2", 2);
	value_remove(object, "gone");
	value_remove(object, "never there");
	assert_prints(object, 0,
		      "{\"array\":[-9223372036854775808,true,null,null],\"texts\":[\"x\",\"\"],"
		      "\"no\":[],\"b\":false,\"r\":0.1,\"whole\":3.0,\"b2\":2}");
}

static void copies_and_references(void **state)
{
	auto_value struct value *original = parsed("{\"a\":[1]}", 0);
	auto_value struct value *same = value_ref(original);
	auto_value struct value *copy = value_copy(original);
	auto_value struct value *nothing = value_copy(NULL);

	(void)state;
	value_append(value_member(original, "a"), value_new_integer(2));
	assert_ptr_equal(same, original);
	assert_prints(copy, 0, "{\"a\":[1]}");
	assert_prints(same, 0, "{\"a\":[1,2]}");
	assert_int_equal(value_kind(nothing), VALUE_NULL);
}

static void reals_are_printed_short_and_exact(void **state)
{
	static const char *const texts[][2] = {
		{"0.1", "0.1"},
		{"1.0", "1.0"},
		{"-0.0", "-0.0"},
		{"0.30000000000000004", "0.30000000000000004"},
		{"5e-324", "4.94065645841247e-324"},
		{"1.7976931348623157e308", "1.7976931348623157e+308"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(texts); i++) {
		auto_value struct value *value = parsed(texts[i][0], 0);
		auto_value struct value *again = parsed(texts[i][1], 0);

		assert_prints(value, 0, texts[i][1]);
		assert_true(value_number(value) == value_number(again));
	}
}

static void printing_stops_at_the_ceiling_with_nothing_added(void **state)
{
	auto_value struct value *value = parsed("{\"a\":[1,\"xy\"],\"b\":{}}", 0);
	const size_t whole = strlen("{\"a\":[1,\"xy\"],\"b\":{}}");

	(void)state;
	for (size_t max = 0; max <= whole; max++) {
		struct buf buf;

		buf_init(&buf, max + 1);
		buf_addc(&buf, '>');
		assert_int_equal(value_print(value, 0, &buf), max == whole);
		assert_int_equal(buf.size, max == whole ? whole + 1 : 1);
		buf_fini(&buf);
	}
}

/* Each byte at each place of a word, against a slow writer. */
static void quoting_sees_every_byte_at_every_place(void **state)
{
	struct buf quoted, expected;

	(void)state;
	buf_init(&quoted, 1000);
	buf_init(&expected, 1000);
	for (unsigned c = 0; c < 256; c++) {
		for (size_t at = 0; at < 20; at++) {
			char text[20];

			memset(text, '!', sizeof(text));
			text[at] = (char)c;
			buf_clear(&quoted);
			buf_clear(&expected);
			assert_true(value_quote((struct str){text, sizeof(text)}, &quoted));
			buf_addc(&expected, '"');
			for (size_t i = 0; i < sizeof(text); i++) {
				if (i != at)
					buf_addc(&expected, '!');
				else if (c == '"' || c == '\\')
					buf_addf(&expected, "\\%c", c);
				else if (c >= 0x80)
					buf_adds(&expected, "\xef\xbf\xbd");
				else if (c >= 0x20)
					buf_addc(&expected, (char)c);
				else if (strchr("\b\f\n\r\t", (int)c) && c)
					buf_addf(&expected, "\\%c", "btn_fr"[c - 8]);
				else
					buf_addf(&expected, "\\u%04x", c);
			}
			buf_addc(&expected, '"');
			assert_string_equal(quoted.data, expected.data);
		}
	}
	buf_clear(&quoted);
	assert_true(value_quote(STR("é世🦊 \xe4\xb8"), &quoted));
	assert_string_equal(quoted.data, "\"é世🦊 \xef\xbf\xbd\xef\xbf\xbd\"");
	/* A terminal would obey them; their neighbours, and half of one, are none. */
	buf_clear(&quoted);
	assert_true(value_quote(STR("é\xc2\x7f\xc2\x80é\xc2\x9b[2J\xc2\x9f\xc2\xa0\xc2"),
				&quoted));
	assert_string_equal(quoted.data, "\"é\xef\xbf\xbd\x7f\\u0080é\\u009b[2J\\u009f\xc2\xa0"
					 "\xef\xbf\xbd\"");
	buf_fini(&quoted);
	buf_fini(&expected);
}

static void a_text_is_found_among_texts_only(void **state)
{
	auto_value struct value *list = NULL;

	(void)state;
	assert_true(value_parse(STR("[1, \"ab\", [\"c\"]]"), 0, &list, NULL));
	assert_true(value_has_text(list, "ab"));
	assert_false(value_has_text(list, "a"));
	assert_false(value_has_text(list, "c"));
	assert_false(value_has_text(NULL, "ab"));
}

static void what_needs_an_escape_is_found_wherever_it_stands(void **state)
{
	static const char specials[] = {'"', '\\', '\n', 0x1f, 0x01};
	enum { SIZE_MOST = 40 }; /* two vectors and a rest */
	char text[SIZE_MOST];

	(void)state;
	for (size_t size = 1; size <= SIZE_MOST; size++) {
		for (size_t i = 0; i < size * sizeof(specials); i++) {
			auto_value struct value *back = NULL;
			struct buf quoted;

			memset(text, '~', size);
			text[i / sizeof(specials)] = specials[i % sizeof(specials)];
			buf_init(&quoted, 10000);
			assert_true(value_quote((struct str){text, size}, &quoted));
			assert_true(quoted.size > size + 2); /* quotes, and an escape */
			assert_true(value_parse(buf_str(&quoted), 0, &back, NULL));
			assert_true(str_equal(value_str(back), (struct str){text, size}));
			buf_fini(&quoted);
		}
	}
}

static void pointers_name_a_part(void **state)
{
	auto_value struct value *value =
		parsed("{\"a\":{\"b/c\":[1,{\"~\":2}]},\"\":3,\"7\":{\"x\":4}}", 0);
	static const struct {
		const char *pointer;
		int64_t number; /* 0: there is none */
	} rows[] = {{"/a/b~1c/0", 1}, {"/a/b~1c/1/~0", 2}, {"/", 3},
		    {"/7/x", 4},      {"/a/b~1c/2", 0},    {"/a/b~1c/x", 0},
		    {"/a/b", 0},      {"/7/x/y", 0},       {"a", 0},
		    {"/b", 0}};
	struct buf text;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(value_integer(value_at_pointer(value, rows[i].pointer)),
				 rows[i].number);
	assert_ptr_equal(value_at_pointer(value, ""), value);
	assert_null(value_at_pointer(NULL, "/a"));
	assert_true(value_set_at(value, "/a/b~1c", value_new_integer(5)));
	assert_true(value_set_at(value, "/n/m~0/o", value_new_boolean(true)));
	assert_false(value_set_at(value, "/a/b~1c/x", value_new_integer(6)));
	assert_false(value_set_at(value, "//x", value_new_integer(6)));
	buf_init(&text, 1 << 10);
	assert_true(value_print(value, 0, &text));
	assert_string_equal(text.data, "{\"a\":{\"b/c\":5},\"\":3,\"7\":{\"x\":4},"
				       "\"n\":{\"m~\":{\"o\":true}}}");
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_is_found_among_texts_only),
		cmocka_unit_test(what_needs_an_escape_is_found_wherever_it_stands),
		cmocka_unit_test(every_kind_is_read_and_printed),
		cmocka_unit_test(members_keep_the_order_of_the_text),
		cmocka_unit_test(wrong_texts_are_explained),
		cmocka_unit_test(what_only_the_values_show_is_explained_too),
		cmocka_unit_test(sentences_repeat_little_of_the_text),
		cmocka_unit_test(depth_has_a_ceiling),
		cmocka_unit_test(texts_over_the_ceiling_are_refused_unread),
		cmocka_unit_test(comments_and_trailing_commas_in_configuration),
		cmocka_unit_test(a_models_words_are_repaired_where_nothing_is_lost),
		cmocka_unit_test(integers_beyond_64_bits_become_reals_where_that_is_wanted),
		cmocka_unit_test(a_text_that_is_searched_may_be_loose),
		cmocka_unit_test(readers_of_the_wrong_kind_give_the_empty_answer),
		cmocka_unit_test(kinds_have_names),
		cmocka_unit_test(strings_may_hold_nul),
		cmocka_unit_test(equality_as_in_json_schema),
		cmocka_unit_test(builders_mend_what_json_cannot_hold),
		cmocka_unit_test(builders_make_every_kind),
		cmocka_unit_test(copies_and_references),
		cmocka_unit_test(pointers_name_a_part),
		cmocka_unit_test(reals_are_printed_short_and_exact),
		cmocka_unit_test(printing_stops_at_the_ceiling_with_nothing_added),
		cmocka_unit_test(quoting_sees_every_byte_at_every_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
