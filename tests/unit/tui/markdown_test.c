/* markdown: the words of a model in, the rows of a terminal out. */
#include "tui/commit/markdown.h"

#include "base/text/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct paint coloured = {
	.colour = true, .unicode = true, .wraps = true, .links = true, .columns = 40};
static const struct paint plain = {.unicode = true, .wraps = true, .columns = 40};
static const struct paint ascii = {.wraps = true, .columns = 40};

/* What is shown of SOURCE when it comes in pieces of STEP characters. */
static void show(const struct paint *look, const char *source, size_t step, struct buf *shown)
{
	struct markdown *markdown = markdown_new();
	struct paint paint = *look;
	struct str rest = str_of(source);

	assert_non_null(markdown);
	buf_init(&paint.out, PAINT_MAX);
	while (rest.size > 0) {
		const size_t size = text_character_border(rest, step + 4);

		markdown_add(markdown, &paint, str_part(rest, 0, size));
		rest = str_part(rest, size, rest.size);
	}
	markdown_end(markdown, &paint);
	assert_int_equal(markdown_unfinished(markdown).size, 0);
	assert_false(markdown_has_begun(markdown));
	markdown_free(markdown);
	(void)buf_addstr(shown, buf_str(&paint.out));
	buf_fini(&paint.out);
}

static void shows(const struct paint *look, const char *source, const char *expected)
{
	static const size_t steps[] = {1, 2, 7, 1 << 20};
	struct buf shown;

	buf_init(&shown, PAINT_MAX);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		buf_clear(&shown);
		show(look, source, steps[i], &shown);
		if (strcmp(shown.data, expected) != 0)
			fail_msg("in pieces of %zu\nexpected:\n%s\nshown:\n%s", steps[i],
				 expected, shown.data);
	}
	buf_fini(&shown);
}

static void emphasis_and_code_have_styles(void **state)
{
	(void)state;
	shows(&coloured, "A *b* **c** `d_e` ***f***.\n",
	      "A \x1b[3mb\x1b[0m \x1b[1mc\x1b[0m \x1b[36md_e\x1b[0m "
	      "\x1b[1m\x1b[3mf\x1b[0m.\n");
}

static void without_colours_the_marks_stay(void **state)
{
	(void)state;
	shows(&plain, "## A _b_ **c** `d_e`\n", "## A *b* **c** `d_e`\n");
}

static void a_heading_is_bold_and_complete_with_its_line(void **state)
{
	(void)state;
	shows(&coloured, "# One\ntext\n## Two ##\n\nmore\n",
	      "\x1b[1mOne\x1b[0m\ntext\n\x1b[1mTwo\x1b[0m\n\nmore\n");
}

static void prose_is_broken_between_words_and_styles_do_not_go_on(void **state)
{
	(void)state;
	shows(&coloured, "one two three **four five six seven eight nine ten**\n",
	      "one two three \x1b[1mfour five six seven eight\x1b[0m\n"
	      "\x1b[1mnine ten\x1b[0m\n");
	shows(&plain, "日本語の文章は語の間に空白がないので、どこでも改行できます。\n",
	      "日本語の文章は語の間に空白がないので、\nどこでも改行できます。\n");
}

static void lists_hang_and_keep_their_numbers(void **state)
{
	(void)state;
	shows(&plain,
	      "Do:\n- one that is longer than a line of this terminal\n- two\n  - deeper\n"
	      "\n3. three\n4. four\n\n   of four\n\nend\n",
	      "Do:\n- one that is longer than a line of\n  this terminal\n- two\n  - deeper\n"
	      "\n3. three\n4. four\n\n   of four\n\nend\n");
	shows(&plain, "- [ ] a\n- [x] b\n* * *\n",
	      "- [ ] a\n- [x] b\n────────────────────────\n");
}

static void a_year_at_the_begin_of_a_line_is_no_list(void **state)
{
	(void)state;
	shows(&plain, "It was in\n1984. A book.\n", "It was in\n1984. A book.\n");
}

static void code_is_exact_and_never_broken(void **state)
{
	static const char line[] =
		"int main(void) { return the_longest_name_of_all(*a_b_c); }";
	char source[200], expected[200];

	(void)state;
	(void)snprintf(source, sizeof(source), "Run:\n```text\n%s\n\n  *x*\n```\nDone.\n",
		       line);
	(void)snprintf(expected, sizeof(expected), "Run:\n\n%s\n\n  *x*\n\nDone.\n", line);
	shows(&coloured, source, expected);
	shows(&coloured, "```c\nint a;\n```\n", "\x1b[35mint\x1b[0m a;\n");
	/* In an item, code has no indentation either. */
	shows(&plain, "1. Run:\n   ```sh\n   make\n     -k\n   ```\n2. Look.\n",
	      "1. Run:\n\nmake\n  -k\n\n2. Look.\n");
	shows(&plain, "- ```\n  x\n  ```\n- y\n", "-\nx\n\n- y\n");
	shows(&plain, "~~~~\n```\n~~~\n~~~~\nx ```y``` z\n", "```\n~~~\n\nx `y` z\n");
	shows(&plain, "```\nnever ended", "never ended\n");
}

static void a_line_of_code_is_shown_when_it_ends(void **state)
{
	struct markdown *markdown = markdown_new();
	struct paint paint = plain;

	(void)state;
	buf_init(&paint.out, PAINT_MAX);
	markdown_add(markdown, &paint, STR("```\none\ntw"));
	assert_string_equal(paint.out.data, "one\n");
	assert_true(str_is(markdown_unfinished(markdown), "tw"));
	markdown_add(markdown, &paint, STR("o\n```\na pa"));
	assert_string_equal(paint.out.data, "one\ntwo\n");
	assert_true(str_is(markdown_unfinished(markdown), "a pa"));
	markdown_add(markdown, &paint, STR("ragraph\nof two lines\n"));
	assert_string_equal(paint.out.data, "one\ntwo\n");
	markdown_add(markdown, &paint, STR("\n"));
	assert_string_equal(paint.out.data, "one\ntwo\n\na paragraph\nof two lines\n");
	markdown_end(markdown, &paint);
	markdown_free(markdown);
	buf_fini(&paint.out);
}

static void an_item_is_shown_when_the_next_one_begins(void **state)
{
	struct markdown *markdown = markdown_new();
	struct paint paint = plain;

	(void)state;
	buf_init(&paint.out, PAINT_MAX);
	markdown_add(markdown, &paint, STR("- one\n- two"));
	assert_string_equal(paint.out.data, "");
	markdown_add(markdown, &paint, STR("\n"));
	assert_string_equal(paint.out.data, "- one\n");
	markdown_end(markdown, &paint);
	assert_string_equal(paint.out.data, "- one\n- two\n");
	markdown_free(markdown);
	buf_fini(&paint.out);
}

static void the_unfinished_row_is_the_last_one(void **state)
{
	struct markdown *markdown = markdown_new();
	struct paint paint = plain;

	(void)state;
	buf_init(&paint.out, PAINT_MAX);
	markdown_add(markdown, &paint,
		     STR("one two three four five six seven eight nine ten"));
	assert_true(str_is(markdown_unfinished(markdown), "nine ten"));
	markdown_end(markdown, &paint);
	markdown_free(markdown);
	buf_fini(&paint.out);
}

static void tables_fit_or_are_as_written(void **state)
{
	(void)state;
	shows(&coloured, "| a | *b* |\n|---|--:|\n| 1 | 200 |\n| three |\n",
	      "\x1b[1ma\x1b[0m        \x1b[1m\x1b[3mb\x1b[0m\n"
	      "\x1b[2m──────────\x1b[0m\n"
	      "1      200\nthree     \n");
	shows(&ascii, "| a | b |\n|---|---|\n| 1 | 2 |\n", "a  b\n----\n1  2\n");
	shows(&plain,
	      "| one | two |\n|---|---|\n| 01234567890123456789 | 012345678901234567 |\n",
	      "| one | two |\n|---|---|\n| 01234567890123456789 | 012345678901234567 |\n");
	/* A cell that has no column would be lost. */
	shows(&plain, "| a |\n|---|\n| 1 | 2 |\n", "| a |\n|---|\n| 1 | 2 |\n");
}

static void links_are_those_of_the_terminal_where_it_has_them(void **state)
{
	(void)state;
	shows(&coloured, "See [the manual](https://a.example/b) now.\n",
	      "See \x1b]8;;https://a.example/b\x1b\\the manual\x1b]8;;\x1b\\ now.\n");
	shows(&plain, "See [the manual](https://a.example/b) now.\n",
	      "See the manual (https://a.example/b)\nnow.\n");
	shows(&coloured, "<https://a.example> https://b.example\n",
	      "https://a.example https://b.example\n");
	/* A text that looks like an address hides no other one. */
	shows(&coloured, "[good.example](https://evil.example/)\n",
	      "good.example (https://evil.example/)\n");
	shows(&coloured, "[x](file:///etc/passwd) ![y](z.png)\n",
	      "x (file:///etc/passwd) y (z.png)\n");
}

static void quotes_have_a_bar(void **state)
{
	(void)state;
	shows(&plain, "> one\n> two\n>\n> - x\n", "│ one\n│ two\n│ - x\n");
	shows(&ascii, "> one\n> > two\n", "> one\n> > two\n");
}

static void nothing_of_the_text_is_lost(void **state)
{
	(void)state;
	shows(&coloured, "[name]: https://a.example \"title\"\n",
	      "[name]: https://a.example \"title\"\n");
	shows(&coloured, "[a](b \"title\")\n", "[a](b \"title\")\n");
	shows(&coloured, "a &amp; b <b>c</b> <!-- d -->\n",
	      "a &amp; b <b>c</b> <!-- d -->\n");
	shows(&coloured, "007. James\n", "007. James\n");
}

static void blank_lines_are_one_and_none_is_at_the_ends(void **state)
{
	(void)state;
	shows(&plain, "\n\n\none\n\n\n\ntwo\n\n\n", "one\n\ntwo\n");
	shows(&plain, "\n \n", "");
}

static void a_block_that_is_too_long_is_as_written(void **state)
{
	struct buf source, shown;

	(void)state;
	buf_init(&source, PAINT_MAX);
	buf_init(&shown, PAINT_MAX);
	while (source.size <= MARKDOWN_BLOCK_MAX)
		(void)buf_adds(&source, "**w**\n");
	(void)buf_adds(&source, "**w**\n\n**x**\n");
	show(&coloured, source.data, 100, &shown);
	assert_true(str_starts(buf_str(&shown), STR("**w**\n**w**\n")));
	assert_true(str_ends(buf_str(&shown), STR("**w**\n\n\x1b[1mx\x1b[0m\n")));
	assert_int_equal(text_count_lines(buf_str(&shown)),
			 text_count_lines(buf_str(&source)));
	buf_clear(&source);
	buf_clear(&shown);
	(void)buf_adds(&source, "```\n");
	while (source.size <= MARKDOWN_BLOCK_MAX * 2)
		(void)buf_adds(&source, "word of code ");
	(void)buf_adds(&source, "\n```\n");
	show(&coloured, source.data, 100, &shown);
	assert_int_equal(shown.size, source.size - 8);
	buf_fini(&shown);
	buf_fini(&source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(emphasis_and_code_have_styles),
		cmocka_unit_test(without_colours_the_marks_stay),
		cmocka_unit_test(a_heading_is_bold_and_complete_with_its_line),
		cmocka_unit_test(prose_is_broken_between_words_and_styles_do_not_go_on),
		cmocka_unit_test(lists_hang_and_keep_their_numbers),
		cmocka_unit_test(a_year_at_the_begin_of_a_line_is_no_list),
		cmocka_unit_test(code_is_exact_and_never_broken),
		cmocka_unit_test(a_line_of_code_is_shown_when_it_ends),
		cmocka_unit_test(an_item_is_shown_when_the_next_one_begins),
		cmocka_unit_test(the_unfinished_row_is_the_last_one),
		cmocka_unit_test(tables_fit_or_are_as_written),
		cmocka_unit_test(links_are_those_of_the_terminal_where_it_has_them),
		cmocka_unit_test(quotes_have_a_bar),
		cmocka_unit_test(nothing_of_the_text_is_lost),
		cmocka_unit_test(blank_lines_are_one_and_none_is_at_the_ends),
		cmocka_unit_test(a_block_that_is_too_long_is_as_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
