/* Tests of plugins/plugin_arguments: one row is one call and the words it becomes. */
#include "../base/unit.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/run.h"

enum { WORDS = 64 };

struct example {
	enum plugin_mode mode;
	const char *order, *positional, *arguments;
	const char *wanted; /* the words between bars; or what the refusal says after "!" */
};

static const struct example rows[] = {
	{PLUGIN_FLAGS, "[\"b\",\"a\"]", "[]", "{\"a\":\"x y\",\"b\":7}", "|--b|7|--a|x y|"},
	{PLUGIN_FLAGS, "[\"on\",\"off\",\"none\"]", "[]",
	 "{\"on\":true,\"off\":false,\"none\":null}", "|--on|--no-off|"},
	{PLUGIN_FLAGS, "[\"n\",\"big\"]", "[]", "{\"n\":0.1,\"big\":12345678901234}",
	 "|--n|0.1|--big|12345678901234|"},
	{PLUGIN_FLAGS, "[\"n\",\"m\",\"l\"]", "[]", "{\"n\":3.0,\"m\":-1e2,\"l\":[1.0]}",
	 "|--n|3|--m|-100|--l|[1.0]|"},
	{PLUGIN_FLAGS, "[\"list\",\"o\"]", "[]", "{\"list\":[1,\"a b\"],\"o\":{\"k\":null}}",
	 "|--list|[1,\"a b\"]|--o|{\"k\":null}|"},
	/* Nothing of it is read by a shell. */
	{PLUGIN_FLAGS, "[\"a\"]", "[]", "{\"a\":\"$(id);`id`|&'\\\"*\"}",
	 "|--a|$(id);`id`|&'\"*|"},
	{PLUGIN_FLAGS, "[\"a\"]", "[]", "{\"a\":\"\"}", "|--a||"},
	{PLUGIN_FLAGS, "[\"a\"]", "[]", "{\"more\":1}", "|--more|1|"},
	{PLUGIN_FLAGS, "[\"a\"]", "[]", "{\"x=1 -v\":1}", "!cannot be the name"},
	{PLUGIN_FLAGS, "[\"a\"]", "[]", "{\"a\":\"b\\u0000c\"}", "!NUL"},
	{PLUGIN_POSITIONAL, "[]",
	 "[{\"name\":\"p\",\"required\":true},{\"name\":\"q\",\"default\":false}]",
	 "{\"p\":\"-rf\"}", "|-rf|false|"},
	{PLUGIN_POSITIONAL, "[]",
	 "[{\"name\":\"p\",\"required\":true},{\"name\":\"q\"},{\"name\":\"r\"}]",
	 "{\"p\":1,\"r\":true}", "|1||true|"},
	{PLUGIN_POSITIONAL, "[]", "[{\"name\":\"p\",\"required\":true},{\"name\":\"q\"}]",
	 "{\"p\":1,\"q\":null}", "|1|"},
	{PLUGIN_POSITIONAL, "[]", "[{\"name\":\"p\"},{\"name\":\"q\",\"required\":true}]",
	 "{\"p\":1}", "!\"q\" is missing"},
	{PLUGIN_JSON, "[]", "[]", "{\"a\":\"$(id)\"}", "|--args-json|<{\"a\":\"$(id)\"}"},
};

static struct value *parsed(const char *text)
{
	struct value *value = NULL;

	assert_true(value_parse(str_of(text), 0, &value, NULL));
	return value;
}

static void each_mode_passes_what_it_should(void **state)
{
	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		auto_value struct value *order = parsed(rows[i].order);
		auto_value struct value *positional = parsed(rows[i].positional);
		auto_value struct value *arguments = parsed(rows[i].arguments);
		const struct plugin_argument_rules rules = {rows[i].mode, order, positional};
		const char *argv[WORDS];
		struct arena arena;
		struct buf input, got;
		struct err err = {0};
		size_t count = 0;

		arena_init(&arena);
		buf_init(&input, 1 << 16);
		buf_init(&got, 1 << 16);
		bool ok = run_arguments_build(&rules, arguments, &arena, argv, WORDS,
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
	auto_value struct value *order = parsed("[\"a\"]");
	const struct plugin_argument_rules rules = {PLUGIN_FLAGS, order, NULL};
	char *text = malloc(PLUGIN_ARGUMENT_MAX);
	const char *argv[WORDS];
	struct arena arena;
	struct buf input;
	struct err err = {0};
	size_t count = 0;

	(void)state;
	memset(text, 'a', PLUGIN_ARGUMENT_MAX);
	arena_init(&arena);
	buf_init(&input, 16);
	/* Its NUL counts. */
	value_set_str(arguments, "a", (struct str){text, PLUGIN_ARGUMENT_MAX - 1});
	assert_true(run_arguments_build(&rules, arguments, &arena, argv, WORDS, &count,
					&input, &err));
	value_set_str(arguments, "a", (struct str){text, PLUGIN_ARGUMENT_MAX});
	assert_false(run_arguments_build(&rules, arguments, &arena, argv, WORDS, &count,
					 &input, &err));
	assert_non_null(strstr(err.text, "\"a\""));
	assert_non_null(strstr(err.text, "json"));
	arena_fini(&arena);
	free(text);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(each_mode_passes_what_it_should),
		cmocka_unit_test(what_the_kernel_would_not_pass_names_the_other_mode),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
