/* Tests of guard/git_text: pointers, work lists and other small files of git. */
#include "../base/unit.h"

#include "guard/readers.h"

static void a_pointer_is_one_path(void **state)
{
	struct str path;

	(void)state;
	assert_true(readers_text_pointer(STR("gitdir: ../a b\r\n"), &path));
	assert_true(str_is(path, "../a b"));
	assert_false(readers_text_pointer(STR("gitdir: \n"), &path));
	assert_false(readers_text_pointer(STR("gitdir: a\nb\n"), &path));
	assert_false(readers_text_pointer(STR("gitdir:a\n"), &path));
	assert_false(readers_text_pointer(STR("x gitdir: a\n"), &path));
	assert_false(readers_text_pointer(STR("gitdir: a\0b\n"), &path));
}

static void a_work_list_that_executes_is_not_inert(void **state)
{
	(void)state;
	assert_true(readers_text_todo_is_inert(
		STR("pick 1 a\nf -C 2 b\n# exec x\n\nlabel l\n"
		    "reset l\nmerge -C 1 l # m\nu refs/heads/x\n")));
	assert_false(readers_text_todo_is_inert(STR("pick 1 a\nexec make\n")));
	assert_false(readers_text_todo_is_inert(STR(" x make")));
	assert_false(readers_text_todo_is_inert(STR("exec\tmake")));
	assert_false(readers_text_todo_is_inert(STR("nobody-knows 1\n")));
	assert_false(readers_text_todo_is_inert(STR("pick 1 a\0\nexec x\n")));
}

static void only_strategies_of_git_are_its_own(void **state)
{
	(void)state;
	assert_true(readers_text_strategy_is_own(STR("ort\n")));
	assert_false(readers_text_strategy_is_own(STR("evil\n")));
	assert_false(readers_text_strategy_is_own(STR("")));
	assert_false(readers_text_strategy_is_own(STR("ort evil")));
}

static void options_of_apply_name_no_file(void **state)
{
	(void)state;
	assert_true(readers_text_apply_is_inert(STR("")));
	/* A blank within one is not told from that between two. */
	assert_false(readers_text_apply_is_inert(STR(" '-p1' '--directory=a b'")));
	assert_true(readers_text_apply_is_inert(STR(" '-p1' '--whitespace=fix' '-C3'\n")));
	assert_false(readers_text_apply_is_inert(STR(" '--build-fake-ancestor=/x'")));
	assert_false(readers_text_apply_is_inert(STR(" '-p1' ''--build=/x'")));
	assert_false(readers_text_apply_is_inert(STR("--unsafe-paths")));
}

static void conflicts_are_told_with_their_paths(void **state)
{
	struct str text = STR("ab12\ta b\0cd.1\tc\0"), path;

	(void)state;
	assert_true(readers_text_next_conflict(&text, &path) && str_is(path, "a b"));
	assert_true(readers_text_next_conflict(&text, &path) && str_is(path, "c"));
	assert_false(readers_text_next_conflict(&text, &path));
	text = STR("ab12\ta");
	assert_true(readers_text_next_conflict(&text, &path) && path.size == 0);
	text = STR("ab12 a\0\tb");
	assert_true(readers_text_next_conflict(&text, &path) && path.size == 0);
}

static void comments_are_nothing(void **state)
{
	(void)state;
	assert_true(readers_text_is_empty(STR("# a\n\n \t\n#b")));
	assert_false(readers_text_is_empty(STR("# a\n*.c diff=x\n")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pointer_is_one_path),
		cmocka_unit_test(a_work_list_that_executes_is_not_inert),
		cmocka_unit_test(only_strategies_of_git_are_its_own),
		cmocka_unit_test(options_of_apply_name_no_file),
		cmocka_unit_test(conflicts_are_told_with_their_paths),
		cmocka_unit_test(comments_are_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
