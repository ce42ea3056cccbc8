/* Tests of tools/bash_hints_git_said: which line a person is told to run. */
#include "../base/unit.h"

#include <stdio.h>
#include <string.h>

#include "tool/denial.h"
#include "tools/bash.h"

#define BUSY "error: could not write config file .git/config: Device or resource busy\n"

static void assert_line(const char *command, const char *output, const char *line)
{
	const char mark[] = "in the repository: ";
	struct tool_result result;

	tool_result_init(&result);
	bash_hints_git_said(str_of(command), str_of(output), &result);
	const struct value *denial = value_item(denial_list(&result), 0);
	const char *remedy = value_text(value_member(denial, "remedy"));
	assert_non_null(remedy);
	const char *at = strstr(remedy, mark);
	assert_string_equal(at != NULL ? at + strlen(mark) : "", line);
	tool_result_fini(&result);
}

static void other_words_of_git_are_left_alone(void **state)
{
	struct tool_result result;

	(void)state;
	tool_result_init(&result);
	bash_hints_git_said(STR("git config a.b c"),
			    STR("error: key does not contain a section: a\n"), &result);
	assert_null(denial_list(&result));
	tool_result_fini(&result);
}

static void a_commit_without_a_name_is_told_where_to_get_one(void **state)
{
	struct tool_result result;

	(void)state;
	tool_result_init(&result);
	bash_hints_git_said(STR("git commit -m x"),
			    STR("Author identity unknown\n\n*** Please tell me who you are.\n"),
			    &result);
	const struct value *denial = value_item(denial_list(&result), 0);
	assert_string_equal(value_text(value_member(denial, "target")), "~/.gitconfig");
	assert_non_null(strstr(value_text(value_member(denial, "remedy")),
			       "git config --global"));
	tool_result_fini(&result);
}

static void the_command_itself_is_the_line(void **state)
{
	(void)state;
	assert_line("git config user.name 'A B'", BUSY, "git config user.name 'A B'");
	assert_line("cd x && /usr/bin/git remote add o ../r; git log", BUSY,
		    "/usr/bin/git remote add o ../r");
	assert_line("git config a.b c; git config a.b c; git config d.e f", BUSY,
		    "git config a.b c && git config d.e f");
	/* One that begins like an earlier one is another. */
	assert_line("git config a.b cd; git config a.b c", BUSY,
		    "git config a.b cd && git config a.b c");
}

static void what_only_shows_is_no_line(void **state)
{
	(void)state;
	assert_line("git config user.name; git config --get a.b; git config -l; git remote -v; "
		    "git remote show o; git submodule status; git sparse-checkout list; "
		    "git config --global a.b c; git config get a.b; git config a.b c",
		    BUSY, "git config a.b c");
	assert_line("git config --unset a.b; git remote rm o", BUSY,
		    "git config --unset a.b && git remote rm o");
}

static void options_before_the_verb_stay_with_it(void **state)
{
	(void)state;
	assert_line("git -c a.b=c submodule --quiet add ./l s; git -C x config d.e f", BUSY,
		    "git -c a.b=c submodule --quiet add ./l s && git -C x config d.e f");
	assert_line("git -C x branch -m a b; git -c; git -C x; git", BUSY, "");
}

static void an_upstream_is_taken_from_what_git_says(void **state)
{
	(void)state;
	assert_line("git checkout -b x origin/x",
		    BUSY BUSY "branch 'x' set up to track 'origin/x'.\n",
		    "git branch --set-upstream-to=origin/x x");
}

static void a_quiet_checkout_has_its_line_too(void **state)
{
	(void)state;
	assert_line("git checkout -q -b x origin/y", BUSY,
		    "git branch --set-upstream-to=origin/y x");
	assert_line("git switch -c x", BUSY, "");
}

static void what_git_has_done_is_not_done_again(void **state)
{
	(void)state;
	assert_line("git branch -m a b", BUSY,
		    "git config --rename-section branch.a branch.b");
	assert_line("git branch -D a", "warning: Update of config-file failed\n",
		    "git config --remove-section branch.a");
}

static void what_is_not_literal_is_no_line(void **state)
{
	(void)state;
	assert_line("git config a.b \"$(rm -rf x)\"", BUSY, "");
	assert_line("git config a.b $HOME", BUSY, "");
	assert_line("git config alias.x '!sh'", BUSY, "");
	assert_line("x=1; make", BUSY "branch 'a;b' set up to track 'o'.\n", "");
}

/* As bash hands it in: whatever is told must not be read from where the text was. */
static void the_output_may_be_the_result_s_own_text(void **state)
{
	struct tool_result result;

	(void)state;
	for (size_t i = 0; i < 512; i += 8) {
		tool_result_init(&result);
		for (size_t j = 0; j < i; j++)
			(void)buf_addc(&result.text, '.');
		(void)buf_adds(&result.text, "*** Please tell me who you are.\n" BUSY
					     "branch 'x' set up to track 'origin/x'.\n");
		bash_hints_git_said(STR("git checkout -b x origin/x"),
				    buf_str(&result.text), &result);
		assert_int_equal(value_count(denial_list(&result)), 2);
		tool_result_fini(&result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_words_of_git_are_left_alone),
		cmocka_unit_test(a_commit_without_a_name_is_told_where_to_get_one),
		cmocka_unit_test(the_command_itself_is_the_line),
		cmocka_unit_test(what_only_shows_is_no_line),
		cmocka_unit_test(options_before_the_verb_stay_with_it),
		cmocka_unit_test(an_upstream_is_taken_from_what_git_says),
		cmocka_unit_test(a_quiet_checkout_has_its_line_too),
		cmocka_unit_test(what_git_has_done_is_not_done_again),
		cmocka_unit_test(what_is_not_literal_is_no_line),
		cmocka_unit_test(the_output_may_be_the_result_s_own_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
