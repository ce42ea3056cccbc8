/* Tests of front/fold. */
#include "../base/unit.h"

#include "base/buf.h"
#include "tui/paint.h"

static void folds(const char *line, size_t columns, const char *wanted)
{
	struct buf out;

	buf_init(&out, 4096);
	paint_fold_line(str_of(line), columns, &out);
	assert_string_equal(out.data, wanted);
	buf_fini(&out);
}

static void what_fits_stays_as_it_is(void **state)
{
	(void)state;
	folds("", 10, "");
	folds("  run     work here", 19, "  run     work here");
}

static void the_rest_hangs_below_its_beginning(void **state)
{
	(void)state;
	folds("run    let an agent work", 18, "run    let an\n       agent work");
	/* Not behind a gap so far right that nothing would fit there. */
	folds("tools  one two  (by me)", 18, "tools  one two\n       (by me)");
	/* Where that would be too far right it hangs a little. */
	folds("run    let an agent work", 12, "run    let\n    an agent\n    work");
}

static void words_and_commands_are_not_cut(void **state)
{
	(void)state;
	folds("see /a/very/long/path there", 10, "see /a/very/long/path\nthere");
	folds("  glovebox run \"some long prompt\"", 12,
	      "  glovebox run \"some long prompt\"");
	folds("  a key    export KEY=value now", 14, "  a key    export KEY=value now");
	folds("    API_KEY=... glovebox run", 14, "    API_KEY=... glovebox run");
}

static void colours_take_no_room_and_wide_characters_two(void **state)
{
	(void)state;
	folds("\x1b[1mone two\x1b[0m", 7, "\x1b[1mone two\x1b[0m");
	folds("文件 文件", 8, "文件\n文件");
	folds("文件 文件", 9, "文件 文件");
}

static void every_line_of_a_text_is_folded(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	paint_fold_lines(STR("one two three\n\nfour five? "), 8, &out);
	assert_string_equal(out.data, "one two\nthree\n\nfour\nfive? ");
	buf_clear(&out);
	paint_fold_for(-1, STR("one two three four"), &out);
	assert_string_equal(out.data, "one two three four");
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_stays_as_it_is),
		cmocka_unit_test(the_rest_hangs_below_its_beginning),
		cmocka_unit_test(words_and_commands_are_not_cut),
		cmocka_unit_test(every_line_of_a_text_is_folded),
		cmocka_unit_test(colours_take_no_room_and_wide_characters_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
