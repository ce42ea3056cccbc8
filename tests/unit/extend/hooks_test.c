/* hooks: files of hooks, what is refused or left out of them, and their matchers. */
#include "extend/hooks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct hooks *parsed(const char *text, bool own)
{
	struct hooks *hooks = hooks_new();
	struct err err = {0};

	if (!hooks_parse(hooks, str_of(text), "h.json", own, &err))
		fail_msg("%s", err.text);
	return hooks;
}

static void assert_refused(const char *text, const char *why)
{
	struct hooks *hooks = hooks_new();
	struct err err = {0};

	assert_false(hooks_parse(hooks, str_of(text), "h.json", true, &err));
	if (strstr(err.text, why) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err.text, why);
	assert_int_equal(hooks->count, 0);
	hooks_free(hooks);
}

#define ONE(members) \
	"{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"type\": \"command\"" members "}]}]}}"

static void a_hook_has_what_its_file_says(void **state)
{
	struct hooks *hooks =
		parsed("{\"model\": \"x\", \"hooks\": {\"Stop\": [{\"matcher\": \"a|b\", \"hooks\": [{"
		       "\"type\": \"command\", \"command\": \"c\", \"timeout\": 5000, \"where\": "
		       "\"host\", \"required\": true}]}]}}",
		       true);
	const struct hook *hook = &hooks->items[0];

	(void)state;
	assert_int_equal(hooks->count, 1);
	assert_int_equal(hook->kind, HOOK_STOP);
	assert_string_equal(hook->command, "c");
	assert_string_equal(hook->source, "h.json");
	assert_int_equal(hook->place, HOOK_ON_HOST);
	assert_true(hook->required && hook->own);
	assert_true(hook_timeout_s(hook) == 600);
	assert_true(hooks_has(hooks, HOOK_STOP));
	assert_false(hooks_has(hooks, HOOK_PROMPT));
	hooks_free(hooks);
}

static void a_file_without_hooks_has_none(void **state)
{
	struct hooks *hooks = parsed("{\"permissions\": {}} // settings", true);

	(void)state;
	assert_int_equal(hooks->count, 0);
	assert_int_equal(hooks->note_count, 0);
	hooks_free(hooks);
}

static void wrong_files_are_refused_with_their_place(void **state)
{
	(void)state;
	assert_refused("[", "h.json");
	assert_refused("{\"hooks\": []}", "\"hooks\" is an object");
	assert_refused("{\"hooks\": {\"Stop\": {}}}", "hooks.Stop, group 1, hook 1: a list");
	assert_refused("{\"hooks\": {\"Stop\": [{}]}}", "a list \"hooks\"");
	assert_refused("{\"hooks\": {\"Stop\": [{\"hooks\": [1]}]}}", "an object");
	assert_refused("{\"hooks\": {\"Stop\": [{\"hooks\": [{}]}]}}", "\"type\"");
	assert_refused(ONE(""), "\"command\" is missing");
	assert_refused(ONE(", \"command\": \"\""), "\"command\" is missing");
	assert_refused(ONE(", \"command\": 1"), "a text");
	assert_refused(ONE(", \"command\": \"a\\u0000b\""), "NUL");
	assert_refused(ONE(", \"command\": \"a\", \"timeout\": 0"), "timeout");
	assert_refused(ONE(", \"command\": \"a\", \"where\": \"moon\""),
		       "\"cell\" or \"host\"");
	assert_refused("{\"hooks\": {\"Stop\": [{\"matcher\": \"(\", \"hooks\": [{\"type\": "
		       "\"command\", \"command\": \"a\"}]}]}}",
		       "h.json");
}

static void what_is_not_run_is_noted(void **state)
{
	static const char *const texts[] = {
		"{\"hooks\": {\"Elicitation\": [{\"hooks\": [3]}]}}",
		"{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"prompt\", \"prompt\": \"?\"}]}]}}",
		ONE(", \"command\": \"a\", \"args\": []"),
		ONE(", \"command\": \"a\", \"where\": \"host\""),
	};
	static const char *const words[] = {"unknown", "another type", "args", "your own"};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct hooks *hooks = parsed(texts[i], false);

		assert_int_equal(hooks->count, 0);
		assert_int_equal(hooks->note_count, 1);
		assert_non_null(strstr(hooks->notes[0].why, words[i]));
		hooks_free(hooks);
	}
}

/* The type is shown to a person in one line. */
static void a_type_that_is_not_run_forges_no_line(void **state)
{
	struct hooks *hooks =
		parsed("{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"a\\nb\\rc\\u202ed\"}]}]}}",
		       false);

	(void)state;
	assert_int_equal(hooks->note_count, 1);
	assert_non_null(strstr(hooks->notes[0].why,
			       "as this one of \"a\\x0Ab\\x0Dc\\xE2\\x80\\xAEd\""));
	hooks_free(hooks);
}

static bool fits(const char *matcher, const char *const *names)
{
	struct buf text;
	struct hooks *hooks;
	bool does;

	buf_init(&text, 4096);
	(void)buf_adds(&text, "{\"hooks\": {\"PreToolUse\": [{\"matcher\": ");
	(void)value_quote(str_of(matcher), &text);
	(void)buf_adds(&text,
		       ", \"hooks\": [{\"type\": \"command\", \"command\": \"a\"}]}]}}");
	hooks = parsed(text.data, true);
	does = hook_fits(&hooks->items[0], names);
	hooks_free(hooks);
	buf_fini(&text);
	return does;
}

static void matchers_are_names_or_expressions(void **state)
{
	static const char *const edit[] = {"MultiEdit", "Edit", "edit_file", NULL};
	static const char *const server[] = {"mcp__memory__add", "memory_add", NULL};
	static const char *const nothing[] = {NULL};

	(void)state;
	assert_true(fits("", edit) && fits("*", edit));
	assert_true(fits("Edit", edit) && fits("Write|Edit", edit) &&
		    fits("edit_file", edit));
	assert_false(fits("Edi", edit) || fits("edit", edit) || fits("Write|", edit));
	assert_true(fits(".*Edit$", edit) && fits("mcp__memory__.*", server));
	assert_false(fits("^Read.*", edit) || fits("mcp__files__.*", server));
	assert_true(fits("Bash", nothing));
}

/* A guard must not fall away because its pattern takes too long. */
static void a_pattern_that_takes_too_long_fits(void **state)
{
	static const char *const name[] = {
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		NULL};

	(void)state;
	assert_true(fits("^(a+)+(a+)+(a+)+(a+)+(a+)+(a+)+$\\d", name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hook_has_what_its_file_says),
		cmocka_unit_test(a_file_without_hooks_has_none),
		cmocka_unit_test(wrong_files_are_refused_with_their_place),
		cmocka_unit_test(what_is_not_run_is_noted),
		cmocka_unit_test(a_type_that_is_not_run_forges_no_line),
		cmocka_unit_test(matchers_are_names_or_expressions),
		cmocka_unit_test(a_pattern_that_takes_too_long_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
