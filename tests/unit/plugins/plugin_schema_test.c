/* Tests of plugins/describe: what scripts say of themselves, well and badly. */
#include "../base/unit.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/describe.h"

#define FUNCTION(name, parameters)                              \
	"{\"type\":\"function\",\"function\":{\"name\":\"" name \
	"\",\"description\":\"d\",\"parameters\":" parameters "}}"
#define SCHEMA(rest, tools) \
	"{\"id\":\"t\",\"version\":\"1\"," rest "\"tools\":[" tools "]}"
#define JSON_MODE "\"args_mode\":\"json\","

static void a_whole_description_is_read(void **state)
{
	static const char text[] = SCHEMA(
		"\"args_mode\":\"positional\",\"positional\":[{\"name\":\"a\",\"required\":true},"
		"{\"name\":\"b\",\"default\":false}],\"config_keys\":[\"mail.user\"],\"more\":1,",
		FUNCTION("t", "{\"properties\":{\"a\":{\"type\":\"string\",\"x-own\":1},"
			      "\"b\":{\"type\":\"boolean\"}},\"required\":[\"a\",\"b\"]}"));
	struct plugin_schema schema;
	struct err err = {0};

	(void)state;
	assert_true(plugin_schema_parse(PLUGIN_SCRIPT, STR(text), &schema, &err));
	assert_string_equal(schema.id, "t");
	assert_string_equal(schema.description, "d");
	assert_int_equal(schema.mode, PLUGIN_POSITIONAL);
	assert_int_equal(schema.argument_count, 2);
	assert_string_equal(schema.arguments[0].name, "a");
	assert_true(schema.arguments[0].required);
	assert_null(schema.arguments[0].initial);
	assert_int_equal(value_kind(schema.arguments[1].initial), VALUE_BOOLEAN);
	const struct value *b =
		value_member(value_member(schema.parameters, "properties"), "b");
	/* A position's default is the property's, so that a call without it fits. */
	assert_int_equal(value_kind(value_member(b, "default")), VALUE_BOOLEAN);
	assert_int_equal(value_integer(value_member(
				 value_member(value_member(schema.parameters, "properties"),
					      "a"),
				 "x-own")),
			 1);
	assert_true(str_is(value_str(value_member(schema.parameters, "type")), "object"));
	assert_int_equal(value_count(schema.warnings), 0);
	char *variable = plugin_schema_variable("mail.user");
	assert_string_equal(variable, "AGENT_TOOL_CONFIG_MAIL_USER");
	free(variable);
	plugin_schema_fini(&schema);
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
	static const struct {
		const char *text, *wanted;
	} rows[] = {
		{"", "nothing was printed"},
		{" \n", "nothing was printed"},
		{"usage: me", "line 1, column 1"},
		{"{\"id\":\"t\",}", "column"},
		{"{} {}", "not one JSON object"},
		{"[]", "must be an object"},
		{"{}", "\"id\" is missing"},
		{"{\"id\":7}", "\"id\" must be text"},
		{"{\"id\":\"a b\",\"version\":\"1\"}", "letters, digits"},
		{"{\"id\":\"../x\",\"version\":\"1\"}", "letters, digits"},
		{"{\"id\":\"t\",\"version\":\"\"}", "\"version\""},
		{SCHEMA("", ""), "\"args_mode\" is missing"},
		{SCHEMA("\"args_mode\":\"magic\",", ""), "\"args_mode\" must be"},
		{SCHEMA(JSON_MODE, ""), "0 entries"},
		{SCHEMA(JSON_MODE, FUNCTION("t", "{}") "," FUNCTION("u", "{}")), "2 entries"},
		{SCHEMA(JSON_MODE, FUNCTION("other", "{}")), "they must be the same"},
		{SCHEMA(JSON_MODE, FUNCTION("t", "[]")), "parameters\" must be an object"},
		{SCHEMA(JSON_MODE, FUNCTION("t", "{\"type\":\"array\"}")),
		 "must be \"object\""},
		{SCHEMA(JSON_MODE, FUNCTION("t", "{\"properties\":7}")), "properties"},
		{SCHEMA(JSON_MODE, FUNCTION("t", "{\"properties\":{\"a b\":{}}}")), "a b"},
		{SCHEMA(JSON_MODE, FUNCTION("t", "{\"properties\":{\"-rf\":{}}}")), "-rf"},
		{SCHEMA("\"args_mode\":\"positional\",", FUNCTION("t", "{}")),
		 "\"positional\" is missing"},
		{SCHEMA("\"args_mode\":\"positional\",\"positional\":[{\"name\":\"z\"}],",
			FUNCTION("t", "{\"properties\":{\"a\":{}}}")),
		 "\"z\""},
		{SCHEMA("\"args_mode\":\"positional\",\"positional\":[{\"name\":\"a\"},"
			"{\"name\":\"a\"}],",
			FUNCTION("t", "{\"properties\":{\"a\":{}}}")),
		 "twice"},
		{SCHEMA(JSON_MODE "\"config_keys\":[\"a-b\",\"a.b\"],", FUNCTION("t", "{}")),
		 "would both be AGENT_TOOL_CONFIG_A_B"},
		{SCHEMA(JSON_MODE "\"config_keys\":[\"\"],", FUNCTION("t", "{}")),
		 "config_keys"},
		{SCHEMA(JSON_MODE "\"config_keys\":\"a\",", FUNCTION("t", "{}")),
		 "config_keys"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct plugin_schema schema;
		struct err err = {0};

		assert_false(plugin_schema_parse(PLUGIN_SCRIPT, str_of(rows[i].text),
						 &schema, &err));
		if (!strstr(err.text, rows[i].wanted))
			fail_msg("%s: %s", rows[i].text, err.text);
	}
}

static void too_much_of_it_is_refused(void **state)
{
	struct plugin_schema schema;
	struct err err = {0};
	char *text = malloc(PLUGIN_SCHEMA_MAX + 1);

	(void)state;
	memset(text, ' ', PLUGIN_SCHEMA_MAX + 1);
	assert_false(plugin_schema_parse(PLUGIN_SCRIPT,
					 (struct str){text, PLUGIN_SCHEMA_MAX + 1},
					 &schema, &err));
	assert_non_null(strstr(err.text, "65536"));
	free(text);
}

static void an_author_is_warned(void **state)
{
	static const char text[] =
		SCHEMA("\"args_mode\":\"positional\",\"positional\":[{\"name\":\"list\"}],",
		       FUNCTION("t",
				"{\"properties\":{\"list\":{\"type\":\"array\"},\"lost\":{},"
				"\"long\":{\"type\":\"string\",\"maxLength\":200000}}}"));
	struct plugin_schema schema;
	struct buf all;

	(void)state;
	assert_true(plugin_schema_parse(PLUGIN_SCRIPT, STR(text), &schema, NULL));
	buf_init(&all, 1 << 16);
	(void)value_print(schema.warnings, 0, &all);
	assert_non_null(strstr(all.data, "\\\"list\\\" comes as JSON"));
	assert_non_null(strstr(all.data, "\\\"lost\\\" is in no position"));
	assert_non_null(strstr(all.data, "128 KiB"));
	buf_fini(&all);
	plugin_schema_fini(&schema);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(a_whole_description_is_read),
		cmocka_unit_test(what_is_wrong_is_said_with_its_place),
		cmocka_unit_test(too_much_of_it_is_refused),
		cmocka_unit_test(an_author_is_warned),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
