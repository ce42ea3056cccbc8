/* Tests of extend/commands: a body and arguments become a prompt, and nothing typed is run. */
#include "../base/unit.h"

#include <string.h>

#include "extend/commands.h"

static void add(struct commands *commands, const char *name, const char *text)
{
	const struct brought item = {
		.kind = BROUGHT_COMMAND,
		.name = (char *)(uintptr_t)name,
		.file = (char *)(uintptr_t)name,
		.text = (char *)(uintptr_t)text,
	};

	commands_add(commands, &item, true);
}

/* Notes that it ran, and answers with the command in brackets. */
static bool run(void *context, const char *command, struct buf *out, struct err *err)
{
	size_t *count = context;

	*count += 1;
	return strcmp(command, "false") == 0 ? err_set(err, 1, "it failed")
					     : buf_addf(out, "[%s]\n", command);
}

static void a_body_and_arguments_become_a_prompt(void **state)
{
	static const struct {
		const char *body, *arguments, *prompt;
		size_t runs;
	} rows[] = {
		{"Go.", "", "Go.", 0},
		{"Go.", "there", "Go.\n\nthere", 0},
		{"Go $ARGUMENTS.", " to  it ", "Go to  it.", 0},
		{"$1|$2|$3", "a 'b c' \"d\\\" e\"", "a|b c|d\" e", 0},
		{"$1|${2:-x y}|${3:-}", "a", "a|x y|", 0},
		{"${1}0 and $10", "a", "a0 and a0", 0},
		{"$0 $$ ${x} ${1 $A", "", "$0 $$ ${x} ${1 $A", 0},
		{"Log: !`git log`; end", "", "Log: [git log]; end", 1},
		{"$ARGUMENTS", "!`rm x` $1", "!`rm x` $1", 0},
		{"!`echo $1`", "a;b", "[echo $1]\n\na;b", 1},
		{"!` open", "", "!` open", 0},
		{"- !`a`\n- !`b`", "", "- [a]\n- [b]", 2},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct commands commands = {0};
		struct err err = {0};
		size_t count = 0;
		struct buf out;

		add(&commands, "x", rows[i].body);
		buf_init(&out, 4096);
		assert_true(command_expand(commands_find(&commands, "x"),
					   str_of(rows[i].arguments), run, &count, &out,
					   &err));
		assert_string_equal(out.data, rows[i].prompt);
		assert_int_equal(count, rows[i].runs);
		buf_fini(&out);
		commands_fini(&commands);
	}
}

static void a_command_that_fails_stops_the_rest(void **state)
{
	struct commands commands = {0};
	struct err err = {0};
	size_t count = 0;
	struct buf out;

	(void)state;
	add(&commands, "x", "!`false` !`true`");
	buf_init(&out, 4096);
	assert_false(command_expand(commands_find(&commands, "x"), STR(""), run, &count,
				    &out, &err));
	assert_int_equal(count, 1);
	assert_string_equal(err.text, "it failed");
	buf_fini(&out);
	commands_fini(&commands);
}

static void a_prompt_has_a_ceiling(void **state)
{
	struct commands commands = {0};
	struct err err = {0};
	size_t count = 0;
	struct buf out;

	(void)state;
	add(&commands, "x", "$ARGUMENTS $ARGUMENTS $ARGUMENTS");
	buf_init(&out, 20);
	assert_false(command_expand(commands_find(&commands, "x"), STR("0123456789"), run,
				    &count, &out, &err));
	assert_non_null(strstr(err.text, "too long"));
	buf_fini(&out);
	commands_fini(&commands);
}

static void front_matter_describes(void **state)
{
	struct commands commands = {0};
	const struct command *command;

	(void)state;
	add(&commands, "git:log",
	    "---\ndescription: Shows.\nargument-hint: \"[N]\"\nallowed-tools: Bash\n---\nLog.\n");
	command = commands_find(&commands, "git:log");
	assert_non_null(command);
	assert_string_equal(command->description, "Shows.");
	assert_string_equal(command->hint, "[N]");
	assert_string_equal(command->body, "Log.");
	add(&commands, "plain", "First line.\nMore.\n");
	assert_string_equal(commands_find(&commands, "plain")->description, "First line.");
	commands_fini(&commands);
}

static void a_bad_command_is_left_out(void **state)
{
	static const struct {
		const char *name, *text, *reason;
	} rows[] = {
		{"a b", "x", "the name is made of"},
		{"", "x", "the name is made of"},
		{"x\n", "x", "the name is made of"},
		{"x", "---\na: [\n---\n", "line"},
		{"x", "---\na: 1\na: 2\n---\n", "line"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct commands commands = {0};

		add(&commands, rows[i].name, rows[i].text);
		assert_null(commands_find(&commands, rows[i].name));
		if (strstr(commands.items[0].problem, rows[i].reason) == NULL)
			fail_msg("%s: %s", rows[i].name, commands.items[0].problem);
		commands_fini(&commands);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_body_and_arguments_become_a_prompt),
		cmocka_unit_test(a_command_that_fails_stops_the_rest),
		cmocka_unit_test(a_prompt_has_a_ceiling),
		cmocka_unit_test(front_matter_describes),
		cmocka_unit_test(a_bad_command_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
