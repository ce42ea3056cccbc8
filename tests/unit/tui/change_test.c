/* change: a diff in, its colours out. */
#include "tui/commit/change.h"

#include "base/text/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define RED   "\x1b[31m"
#define GREEN "\x1b[32m"
#define UNDER "\x1b[4m"
#define OFF   "\x1b[0m"

static void shows(const char *diff, const char *expected)
{
	const struct paint look = {.colour = true};
	struct buf out;

	buf_init(&out, PAINT_MAX);
	change_paint(&look, str_of(diff), &out);
	if (strcmp(out.data, expected) != 0)
		fail_msg("expected:\n%s\nshown:\n%s", expected, out.data);
	buf_fini(&out);
}

static void words_that_differ_are_underlined(void **state)
{
	(void)state;
	shows("-\treturn old_name(a, 1);\n+\treturn new_name(a, 1);\n",
	      RED "-\treturn " OFF RED UNDER "old_name" OFF RED "(a, 1);" OFF "\n" GREEN
		  "+\treturn " OFF GREEN UNDER "new_name" OFF GREEN "(a, 1);" OFF "\n");
	shows("-some one two other words\n+some three four other words\n", RED
	      "-some " OFF RED UNDER "one two" OFF RED " other words" OFF "\n" GREEN
	      "+some " OFF GREEN UNDER "three four" OFF GREEN " other words" OFF "\n");
}

static void lines_that_are_not_alike_have_one_colour(void **state)
{
	(void)state;
	shows("-one two\n+three four\n+more\n", RED
	      "-one two" OFF "\n" GREEN "+three four" OFF "\n" GREEN "+more" OFF "\n");
}

static void the_counts_of_a_hunk_tell_heads_from_lines(void **state)
{
	(void)state;
	shows("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ f\n--- q\n+++ r\n same\n--- a/y\n",
	      "\x1b[1m--- a/x" OFF "\n\x1b[1m+++ b/x" OFF
	      "\n\x1b[36m@@ -1,2 +1,2 @@ f" OFF "\n" RED "--- q" OFF "\n" GREEN
	      "+++ r" OFF "\n same\n\x1b[1m--- a/y" OFF "\n");
}

static void lines_that_are_the_same_have_the_colours_of_their_language(void **state)
{
	(void)state;
	shows("+++ b/x.c\n@@ -1,2 +1,2 @@\n int a;\n-1\n+2\n",
	      "\x1b[1m+++ b/x.c" OFF "\n\x1b[36m@@ -1,2 +1,2 @@" OFF "\n \x1b[35mint" OFF
	      " a;\n" RED "-1" OFF "\n" GREEN "+2" OFF "\n");
}

static void without_colours_a_diff_is_as_it_is(void **state)
{
	static const char diff[] =
		"@@ -1 +1 @@\n-one\n+two\n\\ No newline at end of file\n";
	const struct paint look = {.unicode = true};
	struct buf out;

	(void)state;
	buf_init(&out, PAINT_MAX);
	change_paint(&look, str_of(diff), &out);
	assert_string_equal(out.data, diff);
	buf_fini(&out);
}

static void a_summary_has_files_lines_and_the_first_place(void **state)
{
	struct change_summary summary;

	(void)state;
	change_summarise(STR("--- a/src/x.c\n+++ b/src/x.c\n@@ -10,3 +10,4 @@\n a\n-b\n+c\n+d\n e\n"
			     "--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+++ z\n"),
			 &summary);
	assert_int_equal(summary.files, 2);
	assert_int_equal(summary.added, 3);
	assert_int_equal(summary.removed, 1);
	assert_int_equal(summary.line, 11);
	assert_true(str_is(summary.path, "src/x.c"));
	change_summarise(STR("no diff\n"), &summary);
	assert_int_equal(summary.files, 0);
	assert_int_equal(summary.line, 0);
}

static void many_lines_in_a_row_are_all_there(void **state)
{
	struct buf diff, out;
	const struct paint look = {.colour = true};

	(void)state;
	buf_init(&diff, PAINT_MAX);
	buf_init(&out, PAINT_MAX);
	for (int side = 0; side < 2; side++) {
		for (size_t i = 0; i < 1000; i++)
			(void)buf_addf(&diff, "%c%zu and the same\n", "-+"[side],
				       i + (size_t)side);
	}
	change_paint(&look, buf_str(&diff), &out);
	assert_int_equal(text_count_lines(buf_str(&out)), 2000);
	buf_fini(&diff);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_that_differ_are_underlined),
		cmocka_unit_test(lines_that_are_not_alike_have_one_colour),
		cmocka_unit_test(the_counts_of_a_hunk_tell_heads_from_lines),
		cmocka_unit_test(lines_that_are_the_same_have_the_colours_of_their_language),
		cmocka_unit_test(without_colours_a_diff_is_as_it_is),
		cmocka_unit_test(a_summary_has_files_lines_and_the_first_place),
		cmocka_unit_test(many_lines_in_a_row_are_all_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
