/* Tests of front/mcp_install_json_insert: what stood there stays, and the entry is where a person would put it. */
#include "front/verbs/mcp_install.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct value *entry(void)
{
	struct value *value = value_new_object();
	struct value *list = value_new_array();

	value_append(list, value_new_text("mcp"));
	value_set_text(value, "command", "/g");
	value_set(value, "args", list);
	return value;
}

static enum json_insert_answer insert(const char *text, struct buf *out, struct err *err)
{
	auto_value struct value *value = entry();

	buf_init(out, 1 << 20);
	return mcp_install_json_insert(str_of(text), "servers", "box", value, out, err);
}

#define PRETTY(in)                                                           \
	"\"box\": {\n" in "  \"command\": \"/g\",\n" in "  \"args\": [\n" in \
	"    \"mcp\"\n" in "  ]\n" in "}"

static void the_entry_stands_where_a_person_would_put_it(void **state)
{
	static const struct {
		const char *before, *after;
	} rows[] = {
		{"", "{\n  \"servers\": {\n    " PRETTY("    ") "\n  }\n}\n"},
		{"{}", "{\n  \"servers\": {\n    " PRETTY("    ") "\n  }\n}"},
		{"{\"servers\": {}}\n", "{\"servers\": {\n  " PRETTY("  ") "\n}}\n"},
		{"{\n  \"a\": 1\n}\n",
		 "{\n  \"a\": 1,\n  \"servers\": {\n    " PRETTY("    ") "\n  }\n}\n"},
		{"// mine\n{\n  \"a\": 1, // one\n  /* none */\n}\n",
		 "// mine\n{\n  \"a\": 1, // one\n  \"servers\": {\n    " PRETTY(
			 "    ") "\n  }\n  /* none */\n}\n"},
		{"{\n  \"a\": 1 // one\n}\n",
		 "{\n  \"a\": 1, // one\n  \"servers\": {\n    " PRETTY("    ") "\n  }\n}\n"},
		{"{\n  \"servers\": {\n    \"x\": {\"servers\": {\"b}\\\"\": [\"]\"]}}\n  },\n  \"z\": 0\n}\n",
		 "{\n  \"servers\": {\n    \"x\": {\"servers\": {\"b}\\\"\": [\"]\"]}},\n    " PRETTY(
			 "    ") "\n  },\n  \"z\": 0\n}\n"},
		{"{\n  \"s\\u0065rvers\": { // here\n  }\n}\n",
		 "{\n  \"s\\u0065rvers\": { // here\n    " PRETTY("    ") "\n  }\n}\n"},
		{"{\"n\": {\"servers\": 1}, \"b\": \"//\"}",
		 "{\"n\": {\"servers\": 1}, \"b\": \"//\",\n  \"servers\": {\n    " PRETTY(
			 "    ") "\n  }\n}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = {0};
		struct buf out;

		if (insert(rows[i].before, &out, &err) != JSON_INSERTED)
			fail_msg("%s: %s", rows[i].before, err.text);
		assert_string_equal(out.data, rows[i].after);
		buf_fini(&out);
	}
}

static void tabs_and_line_ends_stay(void **state)
{
	struct err err = {0};
	struct buf out;

	(void)state;
	assert_int_equal(insert("{\r\n\t\"servers\": {\r\n\t\t\"x\": 1\r\n\t}\r\n}\r\n",
				&out, &err),
			 JSON_INSERTED);
	assert_string_equal(out.data,
			    "{\r\n\t\"servers\": {\r\n\t\t\"x\": 1,\r\n\t\t\"box\": {\r\n"
			    "\t\t\t\"command\": \"/g\",\r\n\t\t\t\"args\": [\r\n"
			    "\t\t\t\t\"mcp\"\r\n\t\t\t]\r\n\t\t}\r\n\t}\r\n}\r\n");
	buf_fini(&out);
}

static void an_entry_that_is_there_is_never_changed(void **state)
{
	static const struct {
		const char *text;
		enum json_insert_answer answer;
	} rows[] = {
		{"{\"servers\": {\"box\": {\"args\": [\"mcp\"], \"command\": \"/g\"}}}",
		 JSON_IS_THERE},
		{"{\"servers\": {\"box\": {\"args\": [\"mcp\"], \"command\": \"/h\"}}}",
		 JSON_DIFFERS},
		{"{\"servers\": {\"box\": null}}", JSON_DIFFERS},
		{"{\"servers\": []}", JSON_REFUSED},
		{"[]", JSON_REFUSED},
		{"{\"a\": 1", JSON_REFUSED},
		{"{\"a\": 1, \"a\": 2}", JSON_REFUSED},
		{"{'a': 1}", JSON_REFUSED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = {0};
		struct buf out;

		assert_int_equal(insert(rows[i].text, &out, &err), rows[i].answer);
		assert_int_equal(out.size, 0);
		assert_int_equal(rows[i].answer == JSON_REFUSED, err.text[0] != '\0');
		buf_fini(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_entry_stands_where_a_person_would_put_it),
		cmocka_unit_test(tabs_and_line_ends_stay),
		cmocka_unit_test(an_entry_that_is_there_is_never_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
