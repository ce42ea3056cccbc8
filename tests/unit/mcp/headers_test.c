/* Tests of mcp/bridge/headers: headers that repeat a request, and those of an answer. */
#include "../base/unit.h"

#include <string.h>

#include "mcp/bridge/headers.h"

static struct value *parse(const char *text)
{
	struct value *value = NULL;
	struct err err;

	if (!value_parse(str_of(text), 0, &value, &err))
		fail_msg("%s", err.text);
	return value;
}

static void a_value_is_written_as_it_is_or_in_base64(void **state)
{
	static const struct {
		const char *value, *line;
	} rows[] = {
		{"eu", "A: eu"},
		{"a b", "A: a b"},
		{"", "A;"},
		{" a", "A: =?base64?IGE=?="},
		{"a\tb", "A: =?base64?YQli?="},
		{"a\r\nX: y", "A: =?base64?YQ0KWDogeQ==?="},
		{"\xc3\x84", "A: =?base64?w4Q=?="},
		{"=?base64?x", "A: =?base64?PT9iYXNlNjQ/eA==?="},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_value struct value *list = value_new_array();

		headers_add(list, "A", str_of(rows[i].value));
		assert_string_equal(value_text(value_item(list, 0)), rows[i].line);
	}
}

static void marks_stand_on_arguments_of_simple_types_only(void **state)
{
	static const struct {
		const char *schema;
		bool fits;
	} rows[] = {
		{"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}",
		 true},
		{"{\"properties\":{\"o\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
		 "\"boolean\",\"x-mcp-header\":\"A\"}}}}}",
		 true},
		/* an argument may have any name */
		{"{\"properties\":{\"x-mcp-header\":{\"type\":\"string\"}}}", true},
		{"{\"properties\":{\"a\":{\"type\":\"number\",\"x-mcp-header\":\"A\"}}}",
		 false},
		{"{\"properties\":{\"a\":{\"x-mcp-header\":\"A\"}}}", false},
		{"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"\"}}}",
		 false},
		{"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":1}}}", false},
		{"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A B\"}}}",
		 false},
		{"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A:\"}}}",
		 false},
		{"{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},"
		 "\"b\":{\"type\":\"string\",\"x-mcp-header\":\"a\"}}}",
		 false},
		{"{\"x-mcp-header\":\"A\",\"type\":\"string\"}", false},
		{"{\"properties\":{\"l\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
		 "\"x-mcp-header\":\"A\"}}}}",
		 false},
		{"{\"anyOf\":[{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":"
		 "\"A\"}}}]}",
		 false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_value struct value *schema = parse(rows[i].schema);
		const char *why = NULL;

		assert_int_equal(headers_marks_fit(schema, &why), rows[i].fits);
		assert_int_equal(why == NULL, rows[i].fits);
	}
}

static void a_challenge_is_found_among_others(void **state)
{
	static const char head[] =
		"HTTP/1.1 401 Unauthorized\r\n"
		"WWW-Authenticate: Basic realm=\"scope=wrong, Bearer\", Digest x=\"y\"\r\n"
		"www-authenticate: Negotiate abc==, bearer Scope=\"a \\\"b\\\"\" , error=token,"
		" resource_metadata=\"https://a.org/x\"\r\n\r\n";
	struct buf value;

	(void)state;
	buf_init(&value, 64);
	assert_true(headers_challenge(STR(head), "scope", &value));
	assert_string_equal(value.data, "a \"b\"");
	assert_true(headers_challenge(STR(head), "error", &value));
	assert_string_equal(value.data, "token");
	assert_true(headers_challenge(STR(head), "resource_metadata", &value));
	assert_string_equal(value.data, "https://a.org/x");
	assert_false(headers_challenge(STR(head), "realm", &value));
	assert_false(headers_challenge(STR("WWW-Authenticate: Bearer scope=\"open"),
				       "scope", &value));
	buf_fini(&value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_is_written_as_it_is_or_in_base64),
		cmocka_unit_test(marks_stand_on_arguments_of_simple_types_only),
		cmocka_unit_test(a_challenge_is_found_among_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
