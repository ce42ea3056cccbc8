/* Tests of session/approval_scope: how far an answer for the session reaches. */
#include "../base/unit.h"

#include <string.h>

#include "session/approval.h"

#define EXACT "exactly this text"

static void assert_scope(const char *text, bool network, const char *wanted)
{
	struct buf words;

	buf_init(&words, 4096);
	approval_scope(str_of(text), network, &words);
	assert_string_equal(words.data, wanted);
	buf_fini(&words);
}

static void a_plain_command_is_its_program_and_first_word(void **state)
{
	(void)state;
	assert_scope("git push origin main", false, "git push");
	assert_scope("cargo build --release | tee log", false, "cargo build | tee log");
	assert_scope("./tools/git push", false, "./tools/git push");
}

static void what_runs_other_programs_is_its_text(void **state)
{
	static const char *const texts[] = {
		"bash script",      "bash -c 'echo a'",
		"/bin/sh script",   "env A=1 prog",
		"env prog",         "sudo rm x",
		"xargs rm",         "nohup make",
		"python3 x.py",     "python3.11 x.py",
		"perl x",           "node x.js",
		"find . -name x",   "git push | xargs rm",
		"awk '{print}' x",  "timeout 5 rm x",
		"make all",         "/usr/bin/env prog",
		"command rm x",     "busybox rm x",
		"git push && sh x",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_scope(texts[i], false, EXACT);
		assert_scope(texts[i], true, EXACT);
	}
	/* These only begin like one. */
	assert_scope("pythonic x", false, "pythonic x");
	assert_scope("shellcheck x", false, "shellcheck x");
}

static void an_option_first_says_nothing_about_a_command(void **state)
{
	(void)state;
	assert_scope("git -c core.pager=evil log", false, EXACT);
	assert_scope("git --exec-path=. push", false, EXACT);
	assert_scope("ls", false, EXACT);
	/* Of a host the host is what is granted. */
	assert_scope("curl -s http://example.org/", true, "curl");
	assert_scope("curl", true, "curl");
	assert_scope("curl http://example.org/a?b", true, EXACT);
}

static void words_in_quotes_pass_for_nothing_else(void **state)
{
	(void)state;
	assert_scope("echo 'a | rm x'", false, EXACT);
	assert_scope("'git push' x", false, EXACT);
	assert_scope("'exactly this text: rm' x", false, EXACT);
	assert_scope("'' x", false, EXACT);
	assert_scope("git ''", false, EXACT);
	assert_scope("git \"a\\\\x0A\"", false, EXACT);
}

static void more_than_plain_commands_is_its_text(void **state)
{
	(void)state;
	assert_scope("git push > x", false, EXACT);
	assert_scope("A=1 git push", false, EXACT);
	assert_scope("git $X", false, EXACT);
	assert_scope("git push &", true, EXACT);
	assert_scope("", true, EXACT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_command_is_its_program_and_first_word),
		cmocka_unit_test(what_runs_other_programs_is_its_text),
		cmocka_unit_test(an_option_first_says_nothing_about_a_command),
		cmocka_unit_test(words_in_quotes_pass_for_nothing_else),
		cmocka_unit_test(more_than_plain_commands_is_its_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
