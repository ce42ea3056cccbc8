/*
 * front_matter: what is taken, how plain words are read, and what is refused at which
 * line.
 */
#include "base/text/front_matter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void what_is_taken_becomes_an_object(void **state)
{
	static const struct {
		const char *text, *json;
	} rows[] = {
		{"---\n---\n", "{}"},
		{"---\n---", "{}"},
		{"---\n# nothing but a comment\n---\n\n \n", "{}"},
		{"---\nname: coder\n---\nYou write.\n",
		 "{\"name\":\"coder\",\"prompt\":\"You write.\"}"},
		{"---\r\nname: coder\r\n---\r\n\r\nYou\r\nwrite.\r\n",
		 "{\"name\":\"coder\",\"prompt\":\"You\\r\\nwrite.\"}"},
		{"\xef\xbb\xbf---\nname: a\n---  \nBody",
		 "{\"name\":\"a\",\"prompt\":\"Body\"}"},
		{"---\na: 1\nb: -2\nc: +3\nd: 0.5\ne: 1e3\nf: .5\ng: 007\n---\n",
		 "{\"a\":1,\"b\":-2,\"c\":3,\"d\":0.5,\"e\":1000.0,\"f\":0.5,\"g\":7}"},
		{"---\na: true\nb: False\nc: null\nd: ~\ne:\nf: yes\ng: NULL\n---\n",
		 "{\"a\":true,\"b\":false,\"c\":null,\"d\":null,\"e\":null,\"f\":\"yes\",\"g\":null}"},
		{"---\na: 4G\nb: 1.2.3\nc: \"5\"\nd: 'true'\ne: .\nf: 1e\ng: .inf\nh: 0x1F\n---\n",
		 "{\"a\":\"4G\",\"b\":\"1.2.3\",\"c\":\"5\",\"d\":\"true\",\"e\":\".\",\"f\":\"1e\","
		 "\"g\":\".inf\",\"h\":\"0x1F\"}"},
		{"---\na: 99999999999999999999\nb: 1e999\n---\n",
		 "{\"a\":\"99999999999999999999\",\"b\":\"1e999\"}"},
		{"---\ntools: [a, b]\nwrite:\n  - docs\n  - \"*.md\"\nlimits: {pids: 9}\n---\n",
		 "{\"tools\":[\"a\",\"b\"],\"write\":[\"docs\",\"*.md\"],\"limits\":{\"pids\":9}}"},
		{"---\nprompt: |\n  One\n  two\n---\n", "{\"prompt\":\"One\\ntwo\\n\"}"},
		{"---\na: b\n---\nText\n---\nmore\n",
		 "{\"a\":\"b\",\"prompt\":\"Text\\n---\\nmore\"}"},
		{"---\na: \"x\\0y\"\n---\n", "{\"a\":\"x\\u0000y\"}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_value struct value *object = NULL;
		struct err err = {0};
		struct buf json;

		if (!front_matter_parse(str_of(rows[i].text), &object, &err))
			fail_msg("%s: %s", rows[i].text, err.text);
		buf_init(&json, 1 << 16);
		assert_true(value_print(object, 0, &json));
		assert_string_equal(json.data, rows[i].json);
		buf_fini(&json);
	}
}

static void what_is_wrong_is_named_with_its_line(void **state)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{"", "line 1: must be \"---\""},
		{"name: coder\n", "line 1: must be \"---\""},
		{"----\n---\n", "line 1: must be \"---\""},
		{"---\nname: coder\n", "the front matter has no end"},
		{"---\nname: [a\n---\n", "line 3, column 1: "},
		{"---\nname: a\n\tb: c\n---\n", "line 3, column 1: "},
		{"---\n- a\n---\n", "line 2: must be \"key: value\" lines"},
		{"---\njust words\n---\n", "line 2: must be \"key: value\" lines"},
		{"---\na: 1\nb: 2\na: 3\n---\n", "line 4: the key \"a\" is there twice"},
		{"---\na: &x 1\n---\n", "line 2: an anchor (&) is not taken"},
		{"---\nb: 1\na: *x\n---\n", "line 3: an alias (*) is not taken"},
		{"---\na: &x [*x]\n---\n", "line 2: an anchor (&) is not taken"},
		{"---\na: !!int 5\n---\n", "line 2: a tag (!) is not taken"},
		{"---\na: !x {b: 1}\n---\n", "line 2: a tag (!) is not taken"},
		{"---\n? [a]\n: b\n---\n", "line 2: a key must be a word"},
		{"---\n\"\": b\n---\n", "line 2: a key may not be empty"},
		{"---\n\"a\\0b\": c\n---\n", "line 2: a key may not be empty or hold a NUL"},
		{"---\na: 1\n...\nb: 2\n---\n", "line 4"},
		{"---\nprompt: x\n---\ny\n", "the prompt is there twice"},
		{"---\na: 1\n---\n\xff\n", "the text below the front matter is not UTF-8"},
		{"---\na: \xff\n---\n", "line "},
		{"---\na: [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]\n---\n",
		 "line 2: nests deeper than 16"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct value *object = NULL;
		struct err err = {0};

		if (front_matter_parse(str_of(rows[i].text), &object, &err))
			fail_msg("%s was taken", rows[i].text);
		assert_null(object);
		if (strncmp(err.text, rows[i].error, strlen(rows[i].error)) != 0)
			fail_msg("%s: %s", rows[i].text, err.text);
	}
}

static void large_texts_are_refused(void **state)
{
	struct value *object = NULL;
	struct err err = {0};
	struct buf text;

	(void)state;
	buf_init(&text, 4 << 20);
	assert_true(buf_adds(&text, "---\n"));
	while (text.size <= FRONT_MATTER_MAX)
		assert_true(buf_adds(&text, "# a comment that says nothing at all\n"));
	assert_true(buf_adds(&text, "---\n"));
	assert_false(front_matter_parse(buf_str(&text), &object, &err));
	assert_non_null(strstr(err.text, "the front matter is larger"));
	while (text.size <= FRONT_MATTER_TEXT_MAX)
		assert_true(buf_adds(&text, "words words words words words words words\n"));
	assert_false(front_matter_parse(buf_str(&text), &object, &err));
	assert_non_null(strstr(err.text, "is larger than"));
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_taken_becomes_an_object),
		cmocka_unit_test(what_is_wrong_is_named_with_its_line),
		cmocka_unit_test(large_texts_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
