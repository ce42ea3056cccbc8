/* Tests of plugins/describe: both forms in which a toolbox describes itself. */
#include "../base/unit.h"

#include <string.h>

#include "plugins/describe.h"

static const struct value *property(const struct plugin_schema *schema, const char *name)
{
	return value_member(value_member(schema->parameters, "properties"), name);
}

static void lines_describe_a_tool(void **state)
{
	static const char text[] =
		"name: run-tests\r\ndescription: Run them.\n  All of them.\n\n"
		"description: Twice.\ndir: string the folder\n"
		"n: integer? how often\nd: array (optional) a list\n"
		"o: string optional: words\nname: string whose\nf: any thing\n";
	struct plugin_schema schema;
	struct err err = {0};

	(void)state;
	assert_true(plugin_schema_parse(PLUGIN_TOOLBOX, STR(text), &schema, &err));
	assert_string_equal(schema.id, "tb__run-tests");
	assert_string_equal(schema.description, "Run them.\nAll of them.\nTwice.");
	assert_int_equal(schema.mode, PLUGIN_TOOLBOX_TEXT);
	assert_true(str_is(value_str(value_member(property(&schema, "n"), "type")),
			   "integer"));
	assert_true(str_is(value_str(value_member(property(&schema, "d"), "description")),
			   "a list"));
	assert_true(str_is(value_str(value_member(property(&schema, "o"), "description")),
			   "words"));
	assert_true(str_is(value_str(value_member(property(&schema, "f"), "description")),
			   "any thing"));
	const struct value *required = value_member(schema.parameters, "required");
	assert_int_equal(value_count(required), 3);
	assert_true(str_is(value_str(value_item(required, 0)), "dir"));
	assert_true(str_is(value_str(value_item(required, 1)), "name"));
	assert_true(str_is(value_str(value_item(required, 2)), "f"));
	assert_int_equal(value_count(schema.warnings), 1);
	assert_int_equal(schema.argument_count, 6);
	assert_string_equal(schema.arguments[0].name, "dir");
	assert_string_equal(schema.arguments[5].name, "f");
	plugin_schema_fini(&schema);
}

static void an_object_describes_a_tool(void **state)
{
	struct plugin_schema schema;
	struct err err = {0};

	(void)state;
	assert_true(plugin_schema_parse(PLUGIN_TOOLBOX,
					STR(" {\"name\":\"t\",\"args\":{\"a\":[\"string\",\"w\"],"
					    "\"b\":[\"number\",\"optional n\"]}}"),
					&schema, &err));
	assert_int_equal(schema.mode, PLUGIN_TOOLBOX_JSON);
	assert_int_equal(value_count(value_member(schema.parameters, "required")), 1);
	plugin_schema_fini(&schema);
	assert_true(plugin_schema_parse(PLUGIN_TOOLBOX,
					STR("{\"name\":\"t\",\"inputSchema\":{\"properties\":{"
					    "\"a\":{\"x-own\":1}}}}"),
					&schema, &err));
	assert_int_equal(value_integer(value_member(property(&schema, "a"), "x-own")), 1);
	plugin_schema_fini(&schema);
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *text, *wanted;
	} rows[] = {
		{"", "nothing was printed"},
		{"description: d\n", "no line \"name"},
		{"name: t\nnonsense\n", "line 2: a line is \"key: value\""},
		{"name: t\na: string\na: string\n", "line 3: this argument was described"},
		{"name: t\n: string\n", "line 2: an argument without a name"},
		{"name: a tool\n", "letters, digits"},
		{"name: t\n-a: string\n", "\"-a\""},
		{"{\"name\":\"t\"", "describe: "},
		{"{\"name\":\"a/b\",\"inputSchema\":{}}", "1 to 60 letters"},
		{"{}", "\"name\" must be"},
		{"{\"name\":\"t\",\"args\":[]}", "\"args\" must be"},
		{"{\"name\":\"t\",\"args\":{\"a\":[\"text\"]}}",
		 "[TYPE, DESCRIPTION] with one of"},
		{"{\"name\":\"t\",\"inputSchema\":7}", "must be a JSON Schema"},
		{"{\"name\":\"t\",\"inputSchema\":{\"type\":\"array\"}}",
		 "\"inputSchema/type\" must be \"object\""},
		{"{\"name\":\"t\",\"inputSchema\":{\"properties\":[]}}",
		 "\"inputSchema/properties\" must be an object"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct plugin_schema schema;
		struct err err = {0};

		assert_false(plugin_schema_parse(PLUGIN_TOOLBOX, str_of(rows[i].text),
						 &schema, &err));
		if (strstr(err.text, rows[i].wanted) == NULL)
			fail_msg("%s: %s", rows[i].text, err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_describe_a_tool),
		cmocka_unit_test(an_object_describes_a_tool),
		cmocka_unit_test(what_is_wrong_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
