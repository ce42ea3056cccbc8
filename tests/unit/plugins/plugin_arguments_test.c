/* Tests of plugins/run: one row is one call and the words it becomes. */
#include "../base/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/kernel.h"
#include "plugins/run.h"

enum { WORDS = 64 };

struct example {
	enum plugin_mode mode;
	const char *order, *arguments; /* the script's arguments, and those of the call */
	const char *wanted; /* the words between bars; or what the refusal says after "!" */
};

static const struct example rows[] = {
	{PLUGIN_FLAGS, "[{\"name\":\"b\"},{\"name\":\"a\"}]", "{\"a\":\"x y\",\"b\":7}",
	 "|--b|7|--a|x y|"},
	{PLUGIN_FLAGS, "[{\"name\":\"on\"},{\"name\":\"off\"},{\"name\":\"none\"}]",
	 "{\"on\":true,\"off\":false,\"none\":null}", "|--on|--no-off|"},
	{PLUGIN_FLAGS, "[{\"name\":\"n\"},{\"name\":\"big\"}]",
	 "{\"n\":0.1,\"big\":12345678901234}", "|--n|0.1|--big|12345678901234|"},
	{PLUGIN_FLAGS, "[{\"name\":\"n\"},{\"name\":\"m\"},{\"name\":\"l\"}]",
	 "{\"n\":3.0,\"m\":-1e2,\"l\":[1.0]}", "|--n|3|--m|-100|--l|[1.0]|"},
	{PLUGIN_FLAGS, "[{\"name\":\"list\"},{\"name\":\"o\"}]",
	 "{\"list\":[1,\"a b\"],\"o\":{\"k\":null}}",
	 "|--list|[1,\"a b\"]|--o|{\"k\":null}|"},
	/* Nothing of it is read by a shell. */
	{PLUGIN_FLAGS, "[{\"name\":\"a\"}]", "{\"a\":\"$(id);`id`|&'\\\"*\"}",
	 "|--a|$(id);`id`|&'\"*|"},
	{PLUGIN_FLAGS, "[{\"name\":\"a\"}]", "{\"a\":\"\"}", "|--a||"},
	{PLUGIN_FLAGS, "[{\"name\":\"a\"}]", "{\"more\":1}", "|--more|1|"},
	{PLUGIN_FLAGS, "[{\"name\":\"a\"}]", "{\"x=1 -v\":1}", "!cannot be the name"},
	{PLUGIN_FLAGS, "[{\"name\":\"a\"}]", "{\"a\":\"b\\u0000c\"}", "!NUL"},
	{PLUGIN_POSITIONAL,
	 "[{\"name\":\"p\",\"required\":true},{\"name\":\"q\",\"initial\":false}]",
	 "{\"p\":\"-rf\"}", "|-rf|false|"},
	{PLUGIN_POSITIONAL,
	 "[{\"name\":\"p\",\"required\":true},{\"name\":\"q\"},{\"name\":\"r\"}]",
	 "{\"p\":1,\"r\":true}", "|1||true|"},
	{PLUGIN_POSITIONAL, "[{\"name\":\"p\",\"required\":true},{\"name\":\"q\"}]",
	 "{\"p\":1,\"q\":null}", "|1|"},
	{PLUGIN_POSITIONAL, "[{\"name\":\"p\"},{\"name\":\"q\",\"required\":true}]",
	 "{\"p\":1}", "!\"q\" is missing"},
	{PLUGIN_JSON, "[]", "{\"a\":\"$(id)\"}", "|--args-json|<{\"a\":\"$(id)\"}"},
};

static struct value *parsed(const char *text)
{
	struct value *value = NULL;

	assert_true(value_parse(str_of(text), 0, &value, NULL));
	return value;
}

/* The order that a worker gets for ROW, as it crosses the wire. */
static struct value *carried_of(const struct example *row)
{
	const struct run_order order = {.subcommand = RUN_WORK,
					.file = "/f",
					.copy = "/c",
					.mode = row->mode};
	struct value *carried = run_order_tool(&order, NULL).carried;
	struct value *names = parsed(row->order);

	for (size_t i = 0; i < value_count(names); i++) {
		struct value *name = value_item(names, i);

		if (value_member(name, "required") == NULL)
			value_set_boolean(name, "required", false);
	}
	value_set(carried, "arguments", names);
	return carried;
}

static void each_mode_passes_what_it_should(void **state)
{
	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		auto_value struct value *arguments = parsed(rows[i].arguments);
		auto_value struct value *carried = carried_of(&rows[i]);
		const char *argv[WORDS];
		struct run_order order;
		struct arena arena;
		struct buf input, got;
		struct err err = {0};
		size_t count = 0;

		arena_init(&arena);
		buf_init(&input, 1 << 16);
		buf_init(&got, 1 << 16);
		assert_true(run_order_parse(carried, &arena, &order));
		bool ok = run_arguments_build(&order, arguments, &arena, argv, WORDS,
					      &count, &input, &err);
		(void)buf_addc(&got, '|');
		for (size_t j = 0; ok && j < count; j++)
			(void)buf_addf(&got, "%s|", argv[j]);
		if (input.size > 0)
			(void)buf_addf(&got, "<%s", input.data);
		if (rows[i].wanted[0] == '!')
			assert_non_null(strstr(err.text, rows[i].wanted + 1));
		else
			assert_string_equal(got.data, rows[i].wanted);
		buf_fini(&input);
		buf_fini(&got);
		arena_fini(&arena);
	}
}

static void what_the_kernel_would_not_pass_names_the_other_mode(void **state)
{
	auto_value struct value *arguments = value_new_object();
	const struct plugin_argument argument = {.name = "a"};
	const struct run_order order = {.mode = PLUGIN_FLAGS,
					.arguments = &argument,
					.argument_count = 1};
	char *text = malloc(KERNEL_ARGUMENT_MAX + 1);
	const char *argv[WORDS];
	struct arena arena;
	struct buf input;
	struct err err = {0};
	size_t count = 0;

	(void)state;
	memset(text, 'a', KERNEL_ARGUMENT_MAX + 1);
	arena_init(&arena);
	buf_init(&input, 16);
	value_set_str(arguments, "a", (struct str){text, KERNEL_ARGUMENT_MAX});
	assert_true(run_arguments_build(&order, arguments, &arena, argv, WORDS, &count,
					&input, &err));
	value_set_str(arguments, "a", (struct str){text, KERNEL_ARGUMENT_MAX + 1});
	assert_false(run_arguments_build(&order, arguments, &arena, argv, WORDS, &count,
					 &input, &err));
	assert_non_null(strstr(err.text, "\"a\""));
	assert_non_null(strstr(err.text, "json"));
	arena_fini(&arena);
	free(text);
}

static void no_value_makes_a_second_line(void **state)
{
	static const char *const bad[] = {"a\nb: c",   "a\r",           "a\x0c",
					  "a\xc2\x85", "a\xe2\x80\xa8", "a\xe2\x80\xa9"};
	static const struct plugin_argument names[] = {{.name = "b"},
						       {.name = "a"},
						       {.name = "none"}};
	const struct run_order order = {.mode = PLUGIN_TOOLBOX_TEXT,
					.arguments = names,
					.argument_count = 3};
	auto_value struct value *arguments = value_new_object();
	const char *argv[WORDS];
	struct err err = {0};
	struct arena arena;
	struct buf lines;
	size_t count = 0;

	(void)state;
	arena_init(&arena);
	buf_init(&lines, 1 << 16);
	value_set_text(arguments, "a", "x: \ty \xe2\x82\xac");
	value_set_boolean(arguments, "b", false);
	assert_true(run_arguments_build(&order, arguments, &arena, argv, WORDS, &count,
					&lines, &err));
	assert_string_equal(lines.data, "b: false\na: x: \ty \xe2\x82\xac\n");
	for (size_t i = 0; i < UNIT_COUNT(bad); i++) {
		value_set_text(arguments, "a", bad[i]);
		assert_false(run_arguments_build(&order, arguments, &arena, argv, WORDS,
						 &count, &lines, &err));
		assert_non_null(strstr(err.text, "\"a\" may not hold"));
	}
	assert_int_equal(count, 0);
	buf_fini(&lines);
	arena_fini(&arena);
}

/* All members come back from the wire, and values of the configuration only where they may. */
static void an_order_is_read_as_it_was_printed(void **state)
{
	auto_value struct value *texts = parsed("[\"A=secret\"]");
	auto_value struct value *initial = parsed("{\"x\":[1]}");
	const struct plugin_argument names[] = {{"p", true, NULL}, {"q", false, initial}};
	struct run_order order = {RUN_WORK,
				  3,
				  2.5,
				  "id",
				  "/file",
				  "/copy",
				  PLUGIN_TOOLBOX,
				  PLUGIN_POSITIONAL,
				  names,
				  2,
				  texts,
				  texts,
				  "/folder",
				  "/python",
				  1.5,
				  true};

	(void)state;
	for (order.subcommand = RUN_SCHEMA; order.subcommand <= RUN_WORK;
	     order.subcommand++) {
		const bool given =
			order.subcommand == RUN_WORK || order.subcommand == RUN_ERROR;
		struct tool tool = run_order_tool(&order, initial);
		struct run_order read;
		struct arena arena;

		arena_init(&arena);
		assert_true(tool.internal);
		assert_ptr_equal(tool.schema, initial);
		assert_true(run_order_parse(tool.carried, &arena, &read));
		assert_int_equal(read.subcommand, order.subcommand);
		assert_int_equal(read.code, 3);
		assert_true(read.late_s > 2 && read.timeout_s < 2 && read.stream_stderr);
		assert_string_equal(read.id, "id");
		assert_string_equal(read.file, "/file");
		assert_string_equal(read.copy, "/copy");
		assert_int_equal(read.dialect, PLUGIN_TOOLBOX);
		assert_int_equal(read.mode, PLUGIN_POSITIONAL);
		assert_int_equal(read.argument_count, 2);
		assert_true(read.arguments[0].required && !read.arguments[1].required);
		assert_null(read.arguments[0].initial);
		assert_true(value_equal(read.arguments[1].initial, initial));
		assert_int_equal(value_count(read.environment), given);
		assert_int_equal(value_count(read.secrets), given);
		assert_string_equal(read.folder, "/folder");
		assert_string_equal(read.python, "/python");
		value_free(tool.carried);
		arena_fini(&arena);
	}
}

/* An order lacks one member, or has another kind of value there. */
static void an_order_without_a_member_is_refused(void **state)
{
	static const char *const needed[] = {"subcommand",    "code",      "late_s",
					     "file",          "copy",      "dialect",
					     "mode",          "timeout_s", "secrets",
					     "stream_stderr", "arguments", "environment"};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(needed); i++) {
		auto_value struct value *carried = carried_of(&rows[0]);
		struct run_order order;
		struct arena arena;

		arena_init(&arena);
		assert_true(run_order_parse(carried, &arena, &order));
		value_remove(carried, needed[i]);
		assert_false(run_order_parse(carried, &arena, &order));
		value_set(carried, needed[i], value_new_object());
		assert_false(run_order_parse(carried, &arena, &order));
		arena_fini(&arena);
	}
}

static void what_is_no_order_is_refused(void **state)
{
	static const struct {
		const char *member, *value;
	} odd[] = {
		{"subcommand", "5"},
		{"subcommand", "4.5"},
		{"dialect", "2"},
		{"mode", "5"},
		{"mode", "2.5"},
		{"arguments", "[{}]"},
		{"arguments", "[{\"required\":true}]"},
		{"arguments", "[{\"name\":\"a\"}]"},
		{"arguments", "[{\"name\":\"a\",\"required\":1}]"},
		{"arguments", "[{\"name\":\"a\",\"required\":true},\"b\"]"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(odd); i++) {
		auto_value struct value *carried = carried_of(&rows[0]);
		struct run_order order;
		struct arena arena;

		arena_init(&arena);
		assert_true(run_order_parse(carried, &arena, &order));
		value_set(carried, odd[i].member, parsed(odd[i].value));
		assert_false(run_order_parse(carried, &arena, &order));
		arena_fini(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(each_mode_passes_what_it_should),
		cmocka_unit_test(what_the_kernel_would_not_pass_names_the_other_mode),
		cmocka_unit_test(no_value_makes_a_second_line),
		cmocka_unit_test(an_order_is_read_as_it_was_printed),
		cmocka_unit_test(an_order_without_a_member_is_refused),
		cmocka_unit_test(what_is_no_order_is_refused),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
