/* schema: rows to JSON Schema, and a model's slips repaired or answered. */
#include "base/memory.h"
#include "base/text/text.h"
#include "tool/schema.h"
#include "tool/validate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct row edit_rows[] = {
	{"old", ROW_TEXT, true, "Text to replace", .min = 1, .max = 1000},
	{"new", ROW_TEXT, true, "Text to put there", .aliases = "replacement"},
	{"replace_all", ROW_FLAG, false, "Every place", .initial = "false"},
	{0},
};

static const struct row rows[] = {
	{"path", ROW_PATH, true, "File to work on", .aliases = "file file_path"},
	{"start_line", ROW_COUNT, false, "First line", .aliases = "offset", .min = 1,
	 .max = 100},
	{"end_line", ROW_COUNT, false, "Last line", .min = 1, .max = 100},
	{"mode", ROW_CHOICE, false, "How", .choices = "auto lines files",
	 .initial = "\"auto\""},
	{"shift", ROW_INTEGER, false, "Any integer", .aliases = NULL},
	{"timeout_s", ROW_SECONDS, false, "Seconds", .initial = "120"},
	{"loud", ROW_FLAG, false, "Say more", .aliases = NULL},
	{"edits", ROW_LIST, false, "Changes", .min = 1, .max = 3, .rows = edit_rows},
	{"argv", ROW_TEXTS, false, "Words", .aliases = NULL},
	{"id", ROW_ID, false, "Its number", .min = 1, .max = 50},
	{"folder", ROW_FOLDER, false, "Where", .initial = "\".\""},
	{0},
};

static const struct tool tool = {
	.name = "probe",
	.description = "A tool of every kind.",
	.example = "{\"path\": \"src/main.c\"}",
	.params = rows,
	.effects = EFFECT_READS,
	.timeout_max_s = 600,
};

static const struct tool bare = {.name = "bare", .description = "No arguments."};

static void rows_become_a_schema_in_their_order(void **state)
{
	static const char expected[] =
		"{\"type\":\"object\",\"properties\":{"
		"\"path\":{\"type\":\"string\",\"description\":\"File to work on\",\"minLength\":1},"
		"\"start_line\":{\"type\":\"integer\",\"description\":\"First line, at most 100\","
		"\"minimum\":1},"
		"\"end_line\":{\"type\":\"integer\",\"description\":\"Last line, at most 100\","
		"\"minimum\":1},"
		"\"mode\":{\"type\":\"string\",\"description\":\"How\",\"default\":\"auto\","
		"\"enum\":[\"auto\",\"lines\",\"files\"]},"
		"\"shift\":{\"type\":\"integer\",\"description\":\"Any integer\"},"
		"\"timeout_s\":{\"type\":\"number\",\"description\":\"Seconds, at most 600\","
		"\"default\":120,\"exclusiveMinimum\":0},"
		"\"loud\":{\"type\":\"boolean\",\"description\":\"Say more\"},"
		"\"edits\":{\"type\":\"array\",\"description\":\"Changes\",\"minItems\":1,\"maxItems\":3,"
		"\"items\":{\"type\":\"object\",\"properties\":{"
		"\"old\":{\"type\":\"string\",\"description\":\"Text to replace\",\"minLength\":1,"
		"\"maxLength\":1000},"
		"\"new\":{\"type\":\"string\",\"description\":\"Text to put there\"},"
		"\"replace_all\":{\"type\":\"boolean\",\"description\":\"Every place\","
		"\"default\":false}},"
		"\"required\":[\"old\",\"new\"],\"additionalProperties\":false}},"
		"\"argv\":{\"type\":\"array\",\"description\":\"Words\",\"items\":{\"type\":\"string\"}},"
		"\"id\":{\"type\":\"integer\",\"description\":\"Its number\",\"minimum\":1,"
		"\"maximum\":50},"
		"\"folder\":{\"type\":\"string\",\"description\":\"Where\",\"default\":\".\","
		"\"minLength\":1}},"
		"\"required\":[\"path\"],\"additionalProperties\":false}";
	auto_value struct value *schema = schema_of_tool(&tool);
	auto_value struct value *empty = schema_of_tool(&bare);
	struct buf text;

	(void)state;
	buf_init(&text, 1 << 16);
	assert_true(value_print(schema, 0, &text));
	assert_string_equal(text.data, expected);
	buf_clear(&text);
	assert_true(value_print(empty, 0, &text));
	assert_string_equal(
		text.data,
		"{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}");
	buf_fini(&text);
}

static bool fits(const struct tool *of, struct value *arguments, struct buf *sentence)
{
	auto_value struct value *capped = NULL;

	return schema_fit(of, arguments, &capped, sentence);
}

/* The arguments as they reach the tool, or the sentence. */
static bool run(const char *json, struct buf *out)
{
	auto_value struct value *arguments = NULL;

	buf_clear(out);
	if (!schema_parse_arguments(&tool, str_of(json), &arguments, out) ||
	    !fits(&tool, arguments, out))
		return false;
	return value_print(arguments, VALUE_SORTED, out);
}

#define DEFAULTS "\"folder\":\".\",\"mode\":\"auto\""

static void slips_are_repaired(void **state)
{
	static const struct {
		const char *json, *arguments;
	} cases[] = {
		{"{\"path\": \"a\"}", "{" DEFAULTS ",\"path\":\"a\",\"timeout_s\":120}"},
		{"{\"file\": \"a\", \"timeout_s\": 5}",
		 "{" DEFAULTS ",\"path\":\"a\",\"timeout_s\":5}"},
		{"{\"file_path\": \"a\", \"path\": \"a\", \"timeout_s\": \"0.5\"}",
		 "{" DEFAULTS ",\"path\":\"a\",\"timeout_s\":0.5}"},
		{"{\"file\": null, \"path\": \"a\", \"timeout_s\": null}",
		 "{" DEFAULTS ",\"path\":\"a\",\"timeout_s\":120}"},
		{"```json\n{\"path\": \"a\", \"timeout_s\": 1,}\n```",
		 "{" DEFAULTS ",\"path\":\"a\",\"timeout_s\":1}"},
		{"\"{\\\"path\\\": \\\"a\\\", \\\"timeout_s\\\": 1}\"",
		 "{" DEFAULTS ",\"path\":\"a\",\"timeout_s\":1}"},
		{"{\"path\": \"a\", \"timeout_s\": 1, \"start_line\": \" 7 \", \"end_line\": 9.0}",
		 "{\"end_line\":9," DEFAULTS
		 ",\"path\":\"a\",\"start_line\":7,\"timeout_s\":1}"},
		{"{\"path\": \"a\", \"timeout_s\": 1, \"offset\": \"10\"}",
		 "{" DEFAULTS ",\"path\":\"a\",\"start_line\":10,\"timeout_s\":1}"},
		{"{\"path\": \"a\", \"timeout_s\": 1, \"loud\": \"True\", \"shift\": \"-3\"}",
		 "{\"folder\":\".\",\"loud\":true,\"mode\":\"auto\",\"path\":\"a\",\"shift\":-3,\"timeout_s\":1}"},
		{"{\"path\": \"a\", \"timeout_s\": 1, \"mode\": \"Files\"}",
		 "{\"folder\":\".\",\"mode\":\"files\",\"path\":\"a\",\"timeout_s\":1}"},
		{"{\"path\": \"a\", \"timeout_s\": 1, \"edits\": \"[{\\\"old\\\": \\\"x\\\", "
		 "\\\"replacement\\\": \\\"y\\\"}]\"}",
		 "{\"edits\":[{\"new\":\"y\",\"old\":\"x\",\"replace_all\":false}]," DEFAULTS
		 ",\"path\":\"a\",\"timeout_s\":1}"},
		{"{\"path\": \"a\", \"timeout_s\": 1, \"edits\": {\"old\": \"x\", \"new\": \"y\", "
		 "\"replace_all\": \"true\"}}",
		 "{\"edits\":[{\"new\":\"y\",\"old\":\"x\",\"replace_all\":true}]," DEFAULTS
		 ",\"path\":\"a\",\"timeout_s\":1}"},
		{"{\"path\": \"a\", \"timeout_s\": 1, \"argv\": \"[\\\"ls\\\"]\"}",
		 "{\"argv\":[\"ls\"]," DEFAULTS ",\"path\":\"a\",\"timeout_s\":1}"},
		{"{\"path\": \"/abs/a\", \"timeout_s\": 1}",
		 "{" DEFAULTS ",\"path\":\"/abs/a\",\"timeout_s\":1}"},
		{"{\"path\": \"9\", \"timeout_s\": 1}",
		 "{" DEFAULTS ",\"path\":\"9\",\"timeout_s\":1}"},
	};
	struct buf out;

	(void)state;
	buf_init(&out, 1 << 16);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!run(cases[i].json, &out))
			fail_msg("%s: %s", cases[i].json, out.data);
		assert_string_equal(out.data, cases[i].arguments);
	}
	buf_fini(&out);
}

#define EXAMPLE " Example: {\"path\": \"src/main.c\"}"
#define TAKES \
	"It takes path, start_line, end_line, mode, shift, timeout_s, loud, edits, argv, id, folder." EXAMPLE

static void what_is_wrong_is_said_with_an_example(void **state)
{
	static const struct {
		const char *json, *sentence;
	} cases[] = {
		{"", "probe needs \"path\" (File to work on)." EXAMPLE},
		{"null", "probe needs \"path\" (File to work on)." EXAMPLE},
		{"{\"pth\": \"a\"}",
		 "probe does not take \"pth\"; did you mean \"path\"? " TAKES},
		{"{\"path\": \"a\", \"sandbox\": false}",
		 "probe does not take \"sandbox\". " TAKES},
		{"{\"path\": null}", "probe: \"path\" must be a string, not null." EXAMPLE},
		{"{\"path\": 5}", "probe: \"path\" must be a string, not 5." EXAMPLE},
		{"{\"path\": \"\"}", "probe: \"path\" may not be empty." EXAMPLE},
		{"{\"path\": \"a\\u0000b\"}",
		 "probe: \"path\" may not hold a NUL character." EXAMPLE},
		{"{\"path\": \"a\", \"argv\": [\"x\", \"a\\u0000b\"]}",
		 "probe: \"argv\" may not hold a NUL character." EXAMPLE},
		{"{\"path\": \"a\", \"file\": \"b\"}",
		 "probe: \"file\" and \"path\" are one argument, and differ here; give only "
		 "\"path\"." EXAMPLE},
		{"{\"path\": \"a\", \"start_line\": \"abc\"}",
		 "probe: \"start_line\" must be an integer, not the string \"abc\"." EXAMPLE},
		{"{\"path\": \"a\", \"start_line\": 0}",
		 "probe: \"start_line\" must be at least 1, not 0." EXAMPLE},
		{"{\"path\": \"a\", \"start_line\": 1.5}",
		 "probe: \"start_line\" must be an integer, not 1.5." EXAMPLE},
		{"{\"path\": \"a\", \"start_line\": \"0x10\"}",
		 "probe: \"start_line\" must be an integer, not the string \"0x10\"." EXAMPLE},
		{"{\"path\": \"a\", \"shift\": \"99999999999999999999\"}",
		 "probe: \"shift\" must be an integer, not the string \"99999999999999999999\"." EXAMPLE},
		{"{\"path\": \"a\", \"timeout_s\": 0}",
		 "probe: \"timeout_s\" must be more than 0, not 0." EXAMPLE},
		{"{\"path\": \"a\", \"timeout_s\": -601}",
		 "probe: \"timeout_s\" must be more than 0, not -601." EXAMPLE},
		{"{\"path\": \"a\", \"start_line\": 200.5}",
		 "probe: \"start_line\" must be an integer, not 200.5." EXAMPLE},
		{"{\"path\": \"a\", \"start_line\": -200}",
		 "probe: \"start_line\" must be at least 1, not -200." EXAMPLE},
		{"{\"path\": \"a\", \"start_line\": \"-99999999999999999999\"}",
		 "probe: \"start_line\" must be an integer, not the string "
		 "\"-99999999999999999999\"." EXAMPLE},
		{"{\"path\": \"a\", \"id\": 51}",
		 "probe: \"id\" must be at most 50, not 51." EXAMPLE},
		{"{\"path\": \"a\", \"timeout_s\": \"nan\"}",
		 "probe: \"timeout_s\" must be a number, not the string \"nan\"." EXAMPLE},
		{"{\"path\": \"a\", \"loud\": 1}",
		 "probe: \"loud\" must be true or false, not 1." EXAMPLE},
		{"{\"path\": \"a\", \"mode\": \"line\"}",
		 "probe: \"mode\" must be one of \"auto\", \"lines\", \"files\", not the string \"line\"; "
		 "did you mean \"lines\"?" EXAMPLE},
		{"{\"path\": \"a\", \"edits\": []}",
		 "probe: \"edits\" may not be empty." EXAMPLE},
		{"{\"path\": \"a\", \"edits\": \"[{\"}",
		 "probe: \"edits\" must be a list, not the string \"[{\"." EXAMPLE},
		{"{\"path\": \"a\", \"edits\": [{\"old\": \"x\"}]}",
		 "probe: /edits/0 needs \"new\" (Text to put there)." EXAMPLE},
		{"{\"path\": \"a\", \"edits\": [{\"old\": \"x\", \"new\": \"y\", \"everywhere\": 1}]}",
		 "probe: /edits/0 does not take \"everywhere\". It takes old, new, replace_all." EXAMPLE},
		{"{\"path\": \"a\", \"edits\": [{\"old\": \"\", \"new\": \"y\"}]}",
		 "probe: /edits/0/old may not be empty." EXAMPLE},
		{"{\"path\": \"a\", \"edits\": [5]}",
		 "probe: /edits/0 must be an object, not 5." EXAMPLE},
		{"[\"a\"]",
		 "The arguments of probe must be one JSON object, not array: \"[\\\"a\\\"]\"." EXAMPLE},
	};
	struct buf out;

	(void)state;
	buf_init(&out, 1 << 16);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (run(cases[i].json, &out))
			fail_msg("%s was taken: %s", cases[i].json, out.data);
		assert_string_equal(out.data, cases[i].sentence);
	}
	buf_fini(&out);
}

static void broken_json_is_answered_with_the_position(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 1 << 16);
	assert_false(run("{\"path\": \"a\", \"content\": \"unfini", &out));
	assert_non_null(
		strstr(out.data, "The arguments of probe are not JSON: line 1, column "));
	assert_non_null(strstr(out.data, "They begin with \"{\\\"path\\\": \\\"a\\\""));
	assert_non_null(strstr(out.data, EXAMPLE));
	buf_fini(&out);
}

static void a_refusal_quotes_little(void **state)
{
	static char json[100000];
	struct buf out;

	(void)state;
	buf_init(&out, 1 << 20);
	memset(json, '[', sizeof(json) - 1);
	assert_false(run(json, &out));
	assert_true(out.size < 1000);
	memset(json, 'x', sizeof(json) - 1);
	assert_false(run(json, &out));
	assert_true(out.size < 1000);
	buf_fini(&out);
}

static void a_tool_without_rows_takes_nothing(void **state)
{
	auto_value struct value *arguments = NULL;
	struct buf out;

	(void)state;
	buf_init(&out, 1 << 16);
	assert_true(schema_parse_arguments(&bare, STR(" "), &arguments, &out));
	assert_true(fits(&bare, arguments, &out));
	value_set_integer(arguments, "x", 1);
	assert_false(fits(&bare, arguments, &out));
	assert_string_equal(out.data, "bare does not take \"x\". It takes nothing.");
	buf_fini(&out);
}

/*
 * The rows take what validate takes by the schema of these rows, and refuse the rest in the
 * same words: each argument with each of these values, alone and beside each other one.
 */
static void rows_and_their_schema_say_the_same(void **state)
{
	static const char *const values[] = {
		"null",
		"true",
		"\"\"",
		"\"x\"",
		"\"5\"",
		"\"auto\"",
		"0",
		"-1",
		"1",
		"100",
		"101",
		"600",
		"601",
		"2.0",
		"2.5",
		"-0.5",
		"1e300",
		"[]",
		"[\"a\"]",
		"[1]",
		"{}",
		"[{}]",
		"[{\"old\":\"a\",\"new\":\"\"}]",
		"[{\"old\":\"\",\"new\":\"b\"}]",
		"[{\"old\":\"a\",\"new\":\"b\",\"x\":1}]",
		"[{\"old\":\"a\",\"replacement\":\"b\"}]",
		"[{\"old\":\"a\",\"new\":\"b\",\"replace_all\":true},1]"};
	enum {
		VALUES = sizeof(values) / sizeof(values[0]),
		ROWS = sizeof(rows) / sizeof(rows[0]) - 1
	};
	auto_value struct value *schema = schema_of_tool(&tool);
	size_t taken = 0;

	(void)state;
	for (size_t row = 0; rows[row].name != NULL; row++) {
		for (size_t i = 0; i < VALUES * VALUES; i++) {
			auto_value struct value *given = value_new_object();
			auto_value struct value *capped = NULL;
			struct value *first = NULL, *second = NULL;
			struct validate_problem problem;
			struct buf sentence;

			assert_true(
				value_parse(str_of(values[i % VALUES]), 0, &first, NULL));
			assert_true(value_parse(str_of(values[i / VALUES]), 0, &second,
						NULL));
			value_set_text(given, "path", "a");
			value_set(given, rows[row].name, first);
			value_set(given, rows[(row + i) % ROWS].name, second);
			buf_init(&sentence, 1 << 16);
			/* What could be repaired is repaired in both cases. */
			bool fits = schema_fit(&tool, given, &capped, &sentence);
			assert_int_equal(validate_value(schema, given, &problem), fits);
			if (!fits && !strstr(sentence.data, problem.rule))
				fail_msg("%s, not %s", sentence.data, problem.rule);
			taken += fits;
			buf_fini(&sentence);
		}
	}
	assert_true(taken > 100);
}

static const struct row range_rows[] = {
	{"path", ROW_PATH, true, "File", .aliases = NULL},
	{"limit", ROW_COUNT, false, "Lines", .min = 1, .max = 10},
	{0},
};

static const struct row cap_rows[] = {
	{"depth", ROW_COUNT, false, "Levels", .min = 1, .max = 5},
	{"files", ROW_LIST, false, "Ranges", .rows = range_rows},
	{"timeout_s", ROW_SECONDS, false, "Seconds", .aliases = NULL},
	{"background", ROW_FLAG, false, "As a job", .aliases = NULL},
	{0},
};

static const struct tool cap_tool = {
	.name = "capped",
	.description = "A tool with ceilings.",
	.params = cap_rows,
	.timeout_max_s = 600,
	.job_max_s = 7200,
};

/* JSON as it reaches the tool, and what the answer then says of it. */
static void assert_capped(const char *json, const char *arguments, const char *text,
			  const char *details)
{
	auto_value struct value *given = NULL;
	auto_value struct value *capped = NULL;
	struct tool_result result;
	struct buf out;

	buf_init(&out, 1 << 16);
	tool_result_init(&result);
	assert_true(schema_parse_arguments(&cap_tool, str_of(json), &given, &out));
	if (!schema_fit(&cap_tool, given, &capped, &out))
		fail_msg("%s: %s", json, out.data);
	assert_true(value_print(given, 0, &out));
	assert_string_equal(out.data, arguments);
	schema_cap_tell(&cap_tool, capped, &result);
	assert_string_equal(buf_str(&result.text).data ? result.text.data : "", text);
	buf_clear(&out);
	if (result.details)
		assert_true(value_print(result.details, 0, &out));
	assert_string_equal(out.size ? out.data : "", details);
	tool_result_fini(&result);
	buf_fini(&out);
}

static void a_number_over_its_ceiling_becomes_it_and_is_told(void **state)
{
	(void)state;
	assert_capped("{\"depth\": 5}", "{\"depth\":5}", "", "");
	assert_capped("{\"depth\": 6}", "{\"depth\":5}",
		      "[depth: 6 is over the maximum: 5 was used]\n",
		      "{\"capped\":{\"depth\":{\"given\":6,\"used\":5}}}");
	assert_capped("{\"depth\": \"99999999999999999999\"}", "{\"depth\":5}",
		      "[depth: 1e+20 is over the maximum: 5 was used]\n",
		      "{\"capped\":{\"depth\":{\"given\":1e+20,\"used\":5}}}");
	assert_capped("{\"depth\": 99999999999999999999}", "{\"depth\":5}",
		      "[depth: 1e+20 is over the maximum: 5 was used]\n",
		      "{\"capped\":{\"depth\":{\"given\":1e+20,\"used\":5}}}");
	assert_capped("{\"files\": [{\"path\": \"a\"}, {\"path\": \"b\", \"limit\": 11}]}",
		      "{\"files\":[{\"path\":\"a\"},{\"path\":\"b\",\"limit\":10}]}",
		      "[/files/1/limit: 11 is over the maximum: 10 was used]\n",
		      "{\"capped\":{\"/files/1/limit\":{\"given\":11,\"used\":10}}}");
}

static void a_deadline_has_the_ceiling_of_its_call(void **state)
{
	(void)state;
	assert_capped("{\"timeout_s\": 900.5}", "{\"timeout_s\":600}",
		      "[timeout_s: 900.5 is over the maximum: 600 was used; with \"background\": "
		      "true, as a job that the tool job follows, it may be 7200]\n",
		      "{\"capped\":{\"timeout_s\":{\"given\":900.5,\"used\":600}}}");
	assert_capped("{\"timeout_s\": 900, \"background\": true}",
		      "{\"timeout_s\":900,\"background\":true}", "", "");
	assert_capped("{\"timeout_s\": 9000, \"background\": true}",
		      "{\"timeout_s\":7200,\"background\":true}",
		      "[timeout_s: 9000 is over the maximum: 7200 was used]\n",
		      "{\"capped\":{\"timeout_s\":{\"given\":9000,\"used\":7200}}}");
}

static void many_capped_numbers_are_counted(void **state)
{
	auto_value struct value *given = value_new_object();
	auto_value struct value *capped = NULL;
	struct value *files = value_new_array();
	struct tool_result result;
	struct buf sentence;

	(void)state;
	for (int i = 0; i < 50; i++) {
		struct value *file = value_new_object();

		value_set_text(file, "path", "a");
		value_set_integer(file, "limit", 11);
		value_append(files, file);
	}
	value_set(given, "files", files);
	buf_init(&sentence, 1 << 16);
	tool_result_init(&result);
	assert_true(schema_fit(&cap_tool, given, &capped, &sentence));
	schema_cap_tell(&cap_tool, capped, &result);
	assert_int_equal(text_count_lines(buf_str(&result.text)), 6);
	assert_non_null(strstr(result.text.data, "[and so in 45 more places]\n"));
	assert_int_equal(value_count(value_member(result.details, "capped")), 50);
	tool_result_fini(&result);
	buf_fini(&sentence);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_become_a_schema_in_their_order),
		cmocka_unit_test(slips_are_repaired),
		cmocka_unit_test(what_is_wrong_is_said_with_an_example),
		cmocka_unit_test(broken_json_is_answered_with_the_position),
		cmocka_unit_test(a_refusal_quotes_little),
		cmocka_unit_test(rows_and_their_schema_say_the_same),
		cmocka_unit_test(a_tool_without_rows_takes_nothing),
		cmocka_unit_test(a_number_over_its_ceiling_becomes_it_and_is_told),
		cmocka_unit_test(a_deadline_has_the_ceiling_of_its_call),
		cmocka_unit_test(many_capped_numbers_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
