/* Tests of base/str. */
#include "unit.h"

#include <string.h>

#include "base/str.h"

static const struct str nothing = {NULL, 0};

static void null_is_the_empty_view(void **state)
{
	(void)state;
	assert_int_equal(str_of(NULL).size, 0);
	assert_non_null(str_of(NULL).data);
	assert_true(str_equal(nothing, str_of("")));
	assert_true(str_is(nothing, ""));
	assert_true(str_is(nothing, NULL));
	assert_int_equal(str_part(nothing, 3, 4).size, 0);
	assert_int_equal(str_trim(nothing).size, 0);
}

static void equality_is_of_bytes_and_size(void **state)
{
	(void)state;
	assert_true(str_equal(STR("a\0b"), STR("a\0b")));
	assert_false(str_equal(STR("a\0b"), STR("a\0c")));
	assert_false(str_is(STR("ab"), "a"));
	assert_false(str_is(STR("a\0"), "a"));
}

static void starts_and_ends(void **state)
{
	(void)state;
	assert_true(str_starts(STR("abc"), STR("ab")));
	assert_true(str_starts(STR("abc"), STR("")));
	assert_false(str_starts(STR("ab"), STR("abc")));
	assert_true(str_ends(STR("abc"), STR("bc")));
	assert_true(str_ends(STR("abc"), nothing));
	assert_false(str_ends(STR("bc"), STR("abc")));
	assert_false(str_ends(STR("abc"), STR("ab")));
}

static void parts_are_clamped(void **state)
{
	struct str text = STR("hello");

	(void)state;
	assert_true(str_is(str_part(text, 1, 3), "ell"));
	assert_true(str_is(str_part(text, 3, SIZE_MAX), "lo"));
	assert_true(str_is(str_part(text, SIZE_MAX, SIZE_MAX), ""));
	assert_ptr_equal(str_part(text, 9, 1).data, text.data + 5);
}

static void finds_at_and_after_an_offset(void **state)
{
	(void)state;
	assert_int_equal(str_find(STR("abcabc"), STR("bc"), 0), 1);
	assert_int_equal(str_find(STR("abcabc"), STR("bc"), 2), 4);
	assert_true(str_find(STR("abcabc"), STR("bc"), 5) == (size_t)-1);
	assert_true(str_find(STR("abc"), STR("abcd"), 0) == (size_t)-1);
	assert_true(str_find(STR("abc"), STR("a"), 4) == (size_t)-1);
	assert_int_equal(str_find(STR("abc"), STR(""), 3), 3);
	assert_int_equal(str_find(nothing, STR(""), 0), 0);
	assert_int_equal(str_find(STR("a\0b"), STR("\0b"), 0), 1);
}

static void trims_blanks_on_both_sides(void **state)
{
	(void)state;
	assert_true(str_is(str_trim(STR(" \t\r\n a b\r\n ")), "a b"));
	assert_int_equal(str_trim(STR(" \n\t ")).size, 0);
	assert_true(str_is(str_trim(STR("x")), "x"));
}

static void lines_one_by_one(void **state)
{
	struct str rest = STR("one\r\n\nlast"), line;

	(void)state;
	assert_true(str_next_line(&rest, &line));
	assert_true(str_is(line, "one\r"));
	assert_true(str_next_line(&rest, &line));
	assert_true(str_is(line, ""));
	assert_true(str_next_line(&rest, &line));
	assert_true(str_is(line, "last"));
	assert_false(str_next_line(&rest, &line));
	assert_true(str_is(line, "last"));
}

static void a_line_end_at_the_end_is_no_further_line(void **state)
{
	struct str rest = STR("a\n"), line, empty = nothing;

	(void)state;
	assert_true(str_next_line(&rest, &line));
	assert_false(str_next_line(&rest, &line));
	assert_false(str_next_line(&empty, &line));
}

static void words_one_by_one(void **state)
{
	struct str rest = STR("  one two  "), word, empty = nothing;

	(void)state;
	assert_true(str_next_word(&rest, &word));
	assert_true(str_is(word, "one"));
	assert_true(str_next_word(&rest, &word));
	assert_true(str_is(word, "two"));
	assert_false(str_next_word(&rest, &word));
	assert_false(str_next_word(&empty, &word));
}

static void a_word_is_among_words_only_whole(void **state)
{
	(void)state;
	assert_true(str_among("cmd script", STR("script")));
	assert_false(str_among("cmd script", STR("scr")));
	assert_false(str_among("cmd script", STR("")));
	assert_false(str_among(NULL, STR("cmd")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(null_is_the_empty_view),
		cmocka_unit_test(equality_is_of_bytes_and_size),
		cmocka_unit_test(starts_and_ends),
		cmocka_unit_test(parts_are_clamped),
		cmocka_unit_test(finds_at_and_after_an_offset),
		cmocka_unit_test(trims_blanks_on_both_sides),
		cmocka_unit_test(lines_one_by_one),
		cmocka_unit_test(a_line_end_at_the_end_is_no_further_line),
		cmocka_unit_test(words_one_by_one),
		cmocka_unit_test(a_word_is_among_words_only_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
