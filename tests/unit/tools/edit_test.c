/*
 * edit: the match levels as a table, refusals with their next step, and what no edit may
 * ever touch.
 */
/* clang-format off: cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
/* clang-format on */

#include "base/memory.h"
#include "tools/edit.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct example {
	const char *text, *old, *new;
	enum match_level level; /* MATCH_NONE: refused */
	const char *result;     /* or a part of the refusal */
};

static const struct example rows[] = {
	/* exact */
	{"a\nb\nc\n", "b", "x", MATCH_EXACT, "a\nx\nc\n"},
	{"a\nb\nc\n", "b\n", "", MATCH_EXACT, "a\nc\n"},
	{"a b c", "b", "x", MATCH_EXACT, "a x c"},
	{"no end", "end", "final", MATCH_EXACT, "no final"},
	{"\xef\xbb\xbfhead\nx\n", "head", "HEAD", MATCH_EXACT, "\xef\xbb\xbfHEAD\nx\n"},
	{"caf\xe9 latin\n", "latin", "x", MATCH_EXACT, "caf\xe9 x\n"},
	/* The new lines get the ends of their place. */
	{"a\r\nb\r\nc\r\n", "b", "x\ny", MATCH_EXACT, "a\r\nx\r\ny\r\nc\r\n"},
	{"a\r\nb\nc\n", "c", "x\ny", MATCH_EXACT, "a\r\nb\nx\ny\n"},
	{"a\r\nb\nc\n", "a", "x\ny", MATCH_EXACT, "x\r\ny\r\nb\nc\n"},
	{"a\r\nb", "b", "x\ny", MATCH_EXACT, "a\r\nx\r\ny"},
	{"a\r\nb\r\n", "b", "x\r\ny", MATCH_EXACT, "a\r\nx\r\ny\r\n"},
	{"a\nb\n", "b", "x\r\ny\nz", MATCH_EXACT, "a\nx\ny\nz\n"},
	{"a\r\nb\r\n", "b", "x\ny\r\nz", MATCH_EXACT, "a\r\nx\r\ny\r\nz\r\n"},
	{"a\r\nb\nc\n", "c", "x\r\ny", MATCH_EXACT, "a\r\nb\nx\ny\n"},
	{"a\r\nb\nc\n", "c", "x\r\ny\nz", MATCH_EXACT, "a\r\nb\nx\r\ny\nz\n"},
	{"a", "a", "x\r\ny", MATCH_EXACT, "x\r\ny"},
	/* line ends */
	{"a\r\nb\r\nc\r\n", "a\nb", "x\ny", MATCH_LINE_END, "x\r\ny\r\nc\r\n"},
	{"a\nb\nc\n", "a\r\nb", "x\ny", MATCH_LINE_END, "x\ny\nc\n"},
	{"a\r\nb\nc\r\n", "a\nb\nc\n", "z\n", MATCH_LINE_END, "z\r\n"},
	{"one\r\ntwo\r\n", "one\ntwo\n", "", MATCH_LINE_END, ""},
	/* blanks at line ends */
	{"a  \nb\t\nc\n", "a\nb\n", "x\n", MATCH_TRAILING_SPACE, "x\nc\n"},
	{"a\nb\nc\n", "a  \nb \n", "x\n", MATCH_TRAILING_SPACE, "x\nc\n"},
	{"a  \nb  \nc\n", "a\nb", "x", MATCH_TRAILING_SPACE, "x  \nc\n"},
	{"a \r\nb\r\n", "a\nb\n", "x\n", MATCH_TRAILING_SPACE, "x\r\n"},
	{"a   b \nc\n", "a   b\nc", "x", MATCH_TRAILING_SPACE, "x\n"},
	/* typographic characters */
	{"say \u201chi\u201d\n", "say \"hi\"", "x", MATCH_PUNCTUATION, "x\n"},
	{"say \"hi\"\n", "say \u201chi\u201d", "x", MATCH_PUNCTUATION, "x\n"},
	{"a \u2013 b\n", "a - b", "x", MATCH_PUNCTUATION, "x\n"},
	{"it\u2019s\n", "it's", "x", MATCH_PUNCTUATION, "x\n"},
	{"wait\u2026 \nok\n", "wait...\nok", "x", MATCH_PUNCTUATION, "x\n"},
	{"a\u00a0b\n", "a b", "x", MATCH_PUNCTUATION, "x\n"},
	/* No character is entered in its middle. */
	{"wait\u2026\n", "wait..", "x", MATCH_NONE, "not found"},
	/* indentation */
	{"\t\tif (x)\n\t\t\ty();\n", "if (x)\n\ty();\n", "if (z)\n\tw();\n", MATCH_INDENT,
	 "\t\tif (z)\n\t\t\tw();\n"},
	{"  a:\n    b\n", "a:\n  b\n", "a:\n  c\n  d\n", MATCH_INDENT,
	 "  a:\n    c\n    d\n"},
	{"a:\n  b\n", "    a:\n      b\n", "    a:\n      c\n", MATCH_INDENT, "a:\n  c\n"},
	{"\tif (x) {\n\t\ty();\n\t}\n", "    if (x) {\n        y();\n    }\n",
	 "    if (x) {\n        z();\n    }\n", MATCH_INDENT, "\tif (x) {\n\t\tz();\n\t}\n"},
	{"\tif (x) {\n\t\ty();\n\t}\n", "if (x) {\n  y();\n}\n",
	 "if (x) {\n  if (z)\n    y();\n}\n", MATCH_INDENT,
	 "\tif (x) {\n\t\tif (z)\n\t\t\ty();\n\t}\n"},
	{"    a {\n        b\n    }\n", "\ta {\n\t\tb\n\t}\n", "\ta {\n\t\tc\n\t}\n",
	 MATCH_INDENT, "    a {\n        c\n    }\n"},
	{"\ta\n\n\tb\n", "a\n\nb\n", "a\n\nc\n", MATCH_INDENT, "\ta\n\n\tc\n"},
	{"\ta;  \n\tb;\n", "a;\nb;", "c;", MATCH_INDENT, "\tc;\n"},
	{"\ta\r\n\tb\r\n", "a\nb\n", "c\n", MATCH_INDENT, "\tc\r\n"},
	{"\tx\n\ty\n\tfoo();\n", "    foo();\n", "    foo();\n    bar();\n", MATCH_INDENT,
	 "\tx\n\ty\n\tfoo();\n\tbar();\n"},
	/*
	 * A file of tabs never gets blanks: what these two levels mean cannot be known.
	 */
	{"\tx\n\ty\n\tfoo();\n", "  foo();\n ", "  foo();\n   bar();\n", MATCH_NONE,
	 "not found"},
	/* Not the same for all lines. */
	{"\ta\n\t\tb\n", "a\nb\n", "x\n", MATCH_NONE, "not found"},
	/* line numbers pasted from a reading */
	{"a\nb\nc\n", "2\tb\n3\tc\n", "x\n", MATCH_LINE_NUMBERS, "a\nx\n"},
	{"a\nb\nc\n", "2\tb", "2\tx", MATCH_LINE_NUMBERS, "a\nx\nc\n"},
	{"a\nb\nc\n", "1\tb\n", "x\n", MATCH_NONE, "leave the numbers"},
	{"a\nb\nc\n", "2\tb\n3\tc", "2\tx\nno number", MATCH_NONE, "leave the numbers"},
	{"1\tx\n", "1\tx", "y", MATCH_EXACT, "y\n"},
	/* refused */
	{"a\na\n", "a", "b", MATCH_NONE,
	 "the old text stands at 2 places in f: lines 1, 2 (after `a`)."},
	{"aaa\n", "aa", "b", MATCH_NONE, "stands at 2 places"},
	{"a \nb\na\t\nb\n", "a\nb", "x", MATCH_NONE,
	 "stands at 2 places in f: lines 1, 3 (after `b`)"},
	{"x\n a + a\n", "a", "b", MATCH_NONE,
	 "in f: lines 2 (after `x`), 2 (after `x`). Add"},
	{"\ta\n  a\n", "    a\n", "x\n", MATCH_NONE, "stands at 2 places"},
	{"a\n", "", "x", MATCH_NONE, "\"old\" is empty"},
	{"a\n", "a", "a", MATCH_NONE, "are the same"},
	{"", "a", "b", MATCH_NONE, "The file is empty"},
	{"int main(void)\n", "int main(int)\n", "x", MATCH_NONE,
	 "Nearest is line 1; it differs in (→ is a tab, · a blank):\n"
	 "line 1\n  file: int·main(void)\n  old:  int·main(int)\n"},
	{"a\n\tfoo(1);\nb\n", "a\n  foo(2);\nb\n", "x", MATCH_NONE,
	 "line 2\n  file: →foo(1);\n  old:  ··foo(2);\n"},
	{"alpha\n", "totally different\n", "x", MATCH_NONE,
	 "No line of it (1) is like the first"},
};

static bool apply(const char *text, const struct edit *edits, size_t count, bool exact_only,
		  struct buf *out, struct edit_outcome *outcomes, struct buf *sentence)
{
	buf_init(out, 1 << 20);
	buf_init(sentence, 1 << 20);
	return edit_apply("f", str_of(text), edits, count, exact_only, out, outcomes,
			  sentence);
}

static void each_level_finds_what_it_names_and_no_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct example *row = &rows[i];
		const struct edit edit = {str_of(row->old), str_of(row->new), false};
		struct edit_outcome outcome;
		struct buf out, sentence;
		bool done = apply(row->text, &edit, 1, false, &out, &outcome, &sentence);

		if (done != (row->level != MATCH_NONE))
			fail_msg("row %zu (%s): %s%s", i, row->old, sentence.data, out.data);
		if (!done && !strstr(sentence.data, row->result))
			fail_msg("row %zu (%s): says %s", i, row->old, sentence.data);
		if (done && outcome.level != row->level)
			fail_msg("row %zu (%s): %s", i, row->old,
				 match_level_name(outcome.level));
		if (done && strcmp(out.data, row->result) != 0)
			fail_msg("row %zu (%s): \"%s\"", i, row->old, out.data);
		buf_fini(&out);
		buf_fini(&sentence);
	}
}

static void several_edits_are_made_against_the_original(void **state)
{
	const struct edit edits[] = {{STR("c\n"), STR("b\n"), false},
				     {STR("a\n"), STR("c\n"), false},
				     {STR("b"), STR("B"), false}};
	struct edit_outcome outcomes[COUNT(edits)];
	struct buf out, sentence;

	(void)state;
	assert_true(apply("a\nb\nc\n", edits, COUNT(edits), false, &out, outcomes,
			  &sentence));
	assert_string_equal(out.data, "c\nB\nb\n");
	assert_int_equal(outcomes[0].line, 3);
	buf_fini(&out);
	buf_fini(&sentence);
}

static void overlapping_edits_are_refused(void **state)
{
	const struct edit edits[] = {{STR("one two"), STR("x"), false},
				     {STR("two three"), STR("y"), false}};
	struct edit_outcome outcomes[COUNT(edits)];
	struct buf out, sentence;

	(void)state;
	assert_false(apply("one two three\n", edits, 2, false, &out, outcomes, &sentence));
	assert_non_null(strstr(sentence.data, "Edits 1 and 2 overlap at line 1 of f"));
	buf_fini(&out);
	buf_fini(&sentence);
}

static void all_or_nothing_names_the_edit_that_failed(void **state)
{
	const struct edit edits[] = {{STR("a"), STR("x"), false},
				     {STR("zz"), STR("y"), false}};
	struct edit_outcome outcomes[COUNT(edits)];
	struct buf out, sentence;

	(void)state;
	assert_false(apply("a\n", edits, 2, false, &out, outcomes, &sentence));
	assert_int_equal(strncmp(sentence.data, "Edit 2 of 2: ", 13), 0);
	buf_fini(&out);
	buf_fini(&sentence);
}

static void replace_all_takes_every_place(void **state)
{
	const struct edit edit = {STR("aa"), STR("b"), true};
	const struct edit ends = {STR("x\ny"), STR("z"), true};
	struct edit_outcome outcome;
	struct buf out, sentence;

	(void)state;
	assert_true(apply("aaaa aa\naa\n", &edit, 1, false, &out, &outcome, &sentence));
	assert_string_equal(out.data, "bb b\nb\n");
	assert_int_equal(outcome.count, 4);
	buf_fini(&out);
	buf_fini(&sentence);
	assert_true(apply("x\r\ny\r\nx\r\ny\r\n", &ends, 1, false, &out, &outcome,
			  &sentence));
	assert_string_equal(out.data, "z\r\nz\r\n");
	assert_int_equal(outcome.level, MATCH_LINE_END);
	buf_fini(&out);
	buf_fini(&sentence);
}

static void a_changed_file_takes_exact_single_edits_only(void **state)
{
	const struct edit exact = {STR("b"), STR("x"), false};
	const struct edit loose = {STR("a\nb"), STR("x"), false};
	const struct edit all = {STR("a"), STR("x"), true};
	struct edit_outcome outcome;
	struct buf out, sentence;

	(void)state;
	assert_true(apply("a\nb\n", &exact, 1, true, &out, &outcome, &sentence));
	buf_fini(&out);
	buf_fini(&sentence);
	assert_false(apply("a \nb\n", &loose, 1, true, &out, &outcome, &sentence));
	assert_non_null(strstr(sentence.data, "has changed since it was read"));
	buf_fini(&out);
	buf_fini(&sentence);
	assert_false(apply("a\na\n", &all, 1, true, &out, &outcome, &sentence));
	assert_non_null(strstr(sentence.data, "Read it again"));
	buf_fini(&out);
	buf_fini(&sentence);
}

static void an_edit_made_before_is_seen_at_its_place_only(void **state)
{
	const struct edit made = {STR("int sum(void)\n{\n\treturn 1;\n}\n"),
				  STR("int sum(void)\n{\n\treturn 2;\n}\n"), false};
	const struct edit vague = {STR("x = 1;"), STR("}"), false};
	struct edit_outcome outcome;
	struct buf out, sentence;

	(void)state;
	assert_true(apply("a\nint sum(void)\n{\n\treturn 2;\n}\n", &made, 1, false, &out,
			  &outcome, &sentence));
	assert_true(outcome.already);
	assert_int_equal(outcome.line, 2);
	assert_string_equal(out.data, "a\nint sum(void)\n{\n\treturn 2;\n}\n");
	buf_fini(&out);
	buf_fini(&sentence);
	assert_false(apply("f() {\n}\n", &vague, 1, false, &out, &outcome, &sentence));
	buf_fini(&out);
	buf_fini(&sentence);
}

static void a_large_file_with_many_places_is_quick(void **state)
{
	const struct edit all = {STR("x\ny"), STR("z\n"), true};
	const struct edit missing = {STR("x\ny\nx\ny\nq\n"), STR("z"), false};
	struct edit_outcome outcome;
	struct buf text, out, sentence;

	(void)state;
	buf_init(&text, 16 << 20);
	for (int i = 0; i < 100000; i++)
		buf_adds(&text, "x\r\ny\r\n");
	buf_init(&out, 16 << 20);
	buf_init(&sentence, 1 << 20);
	assert_true(edit_apply("f", buf_str(&text), &all, 1, false, &out, &outcome,
			       &sentence));
	assert_int_equal(outcome.count, 100000);
	buf_clear(&out);
	assert_false(edit_apply("f", buf_str(&text), &missing, 1, false, &out, &outcome,
				&sentence));
	buf_fini(&text);
	buf_fini(&out);
	buf_fini(&sentence);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_level_finds_what_it_names_and_no_more),
		cmocka_unit_test(several_edits_are_made_against_the_original),
		cmocka_unit_test(overlapping_edits_are_refused),
		cmocka_unit_test(all_or_nothing_names_the_edit_that_failed),
		cmocka_unit_test(replace_all_takes_every_place),
		cmocka_unit_test(a_changed_file_takes_exact_single_edits_only),
		cmocka_unit_test(an_edit_made_before_is_seen_at_its_place_only),
		cmocka_unit_test(a_large_file_with_many_places_is_quick),
	};

	return cmocka_run_group_tests_name("tools-edit", tests, NULL, NULL);
}
