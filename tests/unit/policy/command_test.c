/* command: what is literal and what it says, by tables; linear in its text. */
#include "policy/command.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* "<git> <log> && <a b>": every argument in brackets, every join as written. */
static void print_command(const struct command *command, struct buf *out)
{
	for (size_t i = 0; i < command->count; i++) {
		const struct command_part *part = &command->parts[i];

		if (i > 0)
			(void)buf_addf(out, " %s ", command_joins[part->join]);
		assert_null(part->argv[part->argc]);
		for (size_t j = 0; j < part->argc; j++)
			(void)buf_addf(out, "%s<%s>", j > 0 ? " " : "", part->argv[j]);
	}
}

static void literal_texts_are_argument_vectors(void **state)
{
	static const char *const rows[][2] = {
		{"git status", "<git> <status>"},
		{"  git\tstatus  ", "<git> <status>"},
		{"grep -rn 'a b' src", "<grep> <-rn> <a b> <src>"},
		{"echo 'it'\\''s'", "<echo> <it's>"},
		{"echo \"a \\\"b\\\" \\\\ \\n\"", "<echo> <a \"b\" \\ \\n>"},
		{"echo a\\ b \\$HOME \\'", "<echo> <a b> <$HOME> <'>"},
		{"echo ''", "<echo> <>"},
		{"echo a''b\"\"c", "<echo> <abc>"},
		{"a && b || c ; d | e", "<a> && <b> || <c> ; <d> | <e>"},
		{"a&&b||c;d|e", "<a> && <b> || <c> ; <d> | <e>"},
		{"a\nb\n\nc\n", "<a> ; <b> ; <c>"},
		{"a &&\n\n b |\n c", "<a> && <b> | <c>"},
		{"a;\nb;", "<a> ; <b>"},
		{"a \\\n b", "<a> <b>"},
		{"a b\\\nc", "<a> <bc>"},
		{"echo \"a\\\nb\"", "<echo> <ab>"},
		{"echo 'a\nb'", "<echo> <a\nb>"},
		{"echo a # b; c", "<echo> <a>"},
		{"# first\necho a#b '#c'", "<echo> <a#b> <#c>"},
		{"grep \"end$\" f", "<grep> <end$> <f>"},
		{"grep -E \"a$|b$\" f", "<grep> <-E> <a$|b$> <f>"},
		{"grep 'a$' \"$\"", "<grep> <a$> <$>"},
		{"git diff HEAD~1 HEAD^^", "<git> <diff> <HEAD~1> <HEAD^^>"},
		{"cp a.c a.c~", "<cp> <a.c> <a.c~>"},
		{"git show stash@{1}", "<git> <show> <stash@{1}>"},
		{"find . -exec echo {} \\;", "<find> <.> <-exec> <echo> <{}> <;>"},
		{"echo if then }", "<echo> <if> <then> <}>"},
		{"'if' a", "<if> <a>"},
		{"\\time a", "<time> <a>"},
		{"cc -DA=1 -I=x", "<cc> <-DA=1> <-I=x>"},
		{"env A=b c", "<env> <A=b> <c>"},
		{"'A'=b", "<A=b>"},
		{"echo ] ! ^ % @ + , : =", "<echo> <]> <!> <^> <%> <@> <+> <,> <:> <=>"},
		{"echo \xc3\xa9 '\xe2\x82\xac'", "<echo> <\xc3\xa9> <\xe2\x82\xac>"},
		{"'' a", "<> <a>"},
		{"echo \"`\\`\"", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct command command;
		struct buf said;
		bool literal = command_parse(&command, str_of(rows[i][0]));

		if (rows[i][1] == NULL) {
			assert_false(literal);
			command_fini(&command);
			continue;
		}
		if (!literal)
			fail_msg("%s: %s", rows[i][0], command.reason);
		buf_init(&said, 4096);
		print_command(&command, &said);
		assert_string_equal(said.data, rows[i][1]);
		buf_fini(&said);
		command_fini(&command);
	}
}

static void everything_else_has_a_place_and_a_reason(void **state)
{
	static const struct {
		const char *text;
		size_t at;
		const char *reason;
	} rows[] = {
		{"", 0, "no command"},
		{" # only this\n", 0, "no command"},
		{"echo $HOME", 5, "expansion"},
		{"echo \"a $b\"", 8, "expansion"},
		{"echo $'a'", 5, "expansion"},
		{"echo $", 5, "expansion"},
		{"echo $(id)", 5, "substitution"},
		{"echo `id`", 5, "substitution"},
		{"echo \"x`id`\"", 7, "substitution"},
		{"ls *.c", 3, "pattern"},
		{"ls a?", 4, "pattern"},
		{"[ -f a ]", 0, "pattern"},
		{"echo {a,b}", 5, "brace"},
		{"echo {1..3}", 5, "brace"},
		{"ls ~", 3, "tilde"},
		{"echo a=~", 7, "tilde"},
		{"echo a:~b", 7, "tilde"},
		{"echo 'a", 5, "not closed"},
		{"echo \"a", 5, "not closed"},
		{"echo a\\", 6, "backslash"},
		{"echo a\rb", 6, "control"},
		{"echo \xff", 5, "UTF-8"},
		{"echo '\x01'", 6, "control"},
		{"echo a > b", 7, "redirection"},
		{"echo a 2>&1", 8, "redirection"},
		{"cat <<E\nx\nE", 4, "redirection"},
		{"diff <(a) b", 5, "redirection"},
		{"a &", 2, "background"},
		{"(a)", 0, "group"},
		{"f() { a; }", 1, "group"},
		{"a |& b", 2, "|&"},
		{"a;;", 1, ";;"},
		{"if a; then b; fi", 0, "own language"},
		{"a && ! b", 5, "own language"},
		{"a | time b", 4, "own language"},
		{"{ a; }", 0, "own language"},
		{"A=b c", 0, "variable"},
		{"a && A+=b", 5, "variable"},
		{"A\\\nB=c", 0, "variable"},
		{"%1", 0, "job"},
		{"a && '%'x", 5, "job"},
		{"; a", 0, "before it"},
		{"a ; ; b", 4, "before it"},
		{"a\n&& b", 2, "before it"},
		{"a &&", 4, "behind it"},
		{"a | # b", 7, "behind it"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct command command;

		if (command_parse(&command, str_of(rows[i].text)))
			fail_msg("%s: is not literal", rows[i].text);
		if (command.at != rows[i].at || !strstr(command.reason, rows[i].reason))
			fail_msg("%s: %s at %zu", rows[i].text, command.reason, command.at);
		assert_non_null(command.remedy);
		assert_int_equal(command.count, 0);
		command_fini(&command);
	}
}

static void a_nul_byte_is_seen_wherever_it_stands(void **state)
{
	static const struct str rows[] = {
		{"a\0b", 3},   {"a 'x\0'", 6}, {"a \"\\\0\"", 6},
		{"a # \0", 5}, {"a\\\0", 3},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct command command;

		assert_false(command_parse(&command, rows[i]));
		assert_non_null(strstr(command.reason, "control"));
		command_fini(&command);
	}
}

static void its_ceilings_are_refusals(void **state)
{
	struct command command;
	struct buf text;

	(void)state;
	buf_init(&text, 2 * COMMAND_TEXT_MAX);
	for (size_t i = 0; i < COMMAND_PARTS_MAX; i++)
		(void)buf_adds(&text, "a;");
	assert_true(command_parse(&command, buf_str(&text)));
	assert_int_equal(command.count, COMMAND_PARTS_MAX);
	command_fini(&command);
	(void)buf_adds(&text, "a");
	assert_false(command_parse(&command, buf_str(&text)));
	assert_int_equal(command.at, 2 * COMMAND_PARTS_MAX);
	command_fini(&command);
	while (text.size <= COMMAND_TEXT_MAX)
		(void)buf_adds(&text, " b");
	assert_false(command_parse(&command, buf_str(&text)));
	command_fini(&command);
	buf_fini(&text);
}

static int64_t used_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

/* Of this process alone, and the least of several: others may have been in the way. */
static int64_t time_of(struct str text)
{
	enum { TRIES = 3 };
	int64_t best = INT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		struct command command;
		int64_t began = used_us();

		(void)command_parse(&command, text);
		began = used_us() - began;
		best = began < best ? began : best;
		command_fini(&command);
	}
	return best;
}

/* Eight times the text may take eight times as long, and some more, but not 64 times. */
static void time_is_linear_in_the_text(void **state)
{
	static const char *const pieces[] = {"a ",  "=",    "a=",    "{a",      "\"$\"",
					     "'' ", "\\\n", "# a\n", "~",       "..",
					     "$(",  "`",    "[",     "\xc3\xa9"};
	enum { SMALL = COMMAND_TEXT_MAX / 8, TIMES = 8, SLACK = 4 };

	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct buf text;
		int64_t small, large;

		buf_init(&text, SMALL * TIMES);
		(void)buf_adds(&text, "a ");
		while (buf_adds(&text, pieces[i]))
			;
		small = time_of(str_part(buf_str(&text), 0, SMALL));
		large = time_of(buf_str(&text));
		if (large > SLACK * TIMES * (small + 100))
			fail_msg("%s: %lld us, then %lld us", pieces[i], (long long)small,
				 (long long)large);
		buf_fini(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(literal_texts_are_argument_vectors),
		cmocka_unit_test(everything_else_has_a_place_and_a_reason),
		cmocka_unit_test(a_nul_byte_is_seen_wherever_it_stands),
		cmocka_unit_test(its_ceilings_are_refusals),
		cmocka_unit_test(time_is_linear_in_the_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
