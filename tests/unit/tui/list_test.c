/* list: keys in, rows and a choice out. */
#include "tui/choose/list.h"

#include "tui/theme.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void fill(struct list *list)
{
	list_init(list, "Things");
	list_add(list, STR("apple pie"), STR("sweet, 3 h"));
	list_add(list, STR("Apple\x1b[31m tree"), STR("tall"));
	list_add(list, STR("pear\nsecond line"), STR(""));
}

static void type(struct list *list, const char *text)
{
	assert_int_equal(list_take(list, TYPING_TEXT, str_of(text)), LIST_GOES_ON);
}

static void shows_as(const struct list *list, const struct line_look *look,
		     const char *wanted)
{
	struct line_frame frame;

	line_frame_init(&frame);
	list_compose(&frame, list, look);
	assert_string_equal(frame.rows.data, wanted);
	line_frame_fini(&frame);
}

static void shows(const struct list *list, size_t columns, size_t rows, const char *wanted)
{
	shows_as(list, &(struct line_look){.columns = columns, .rows = rows}, wanted);
}

static void typed_words_filter(void **state)
{
	struct list list;

	(void)state;
	fill(&list);
	shows(&list, 80, 24,
	      "Things: \n> apple pie  sweet, 3 h\n  Apple\\x1B[31m tree  tall\n  pear\n");
	type(&list, "APP");
	assert_int_equal(list.fits, 2);
	type(&list, " tall");
	assert_int_equal(list_choice(&list), 1);
	assert_int_equal(list_take(&list, TYPING_ENTER, STR("")), LIST_CHOSEN);
	type(&list, "x");
	assert_int_equal(list_choice(&list), SIZE_MAX);
	assert_int_equal(list_take(&list, TYPING_ENTER, STR("")), LIST_GOES_ON);
	shows(&list, 80, 24, "Things: APP tallx\n  nothing fits; Escape leaves\n");
	assert_int_equal(list_take(&list, TYPING_BACKSPACE, STR("")), LIST_GOES_ON);
	assert_int_equal(list_choice(&list), 1);
	assert_int_equal(list_take(&list, TYPING_KILL_TO_START, STR("")), LIST_GOES_ON);
	assert_int_equal(list.fits, 3);
	list_fini(&list);
}

static void arrows_go_round(void **state)
{
	struct list list;

	(void)state;
	fill(&list);
	(void)list_take(&list, TYPING_UP, STR(""));
	assert_int_equal(list_choice(&list), 2);
	(void)list_take(&list, TYPING_DOWN, STR(""));
	assert_int_equal(list_choice(&list), 0);
	(void)list_take(&list, TYPING_END, STR(""));
	assert_int_equal(list_choice(&list), 2);
	(void)list_take(&list, TYPING_HOME, STR(""));
	assert_int_equal(list_choice(&list), 0);
	assert_int_equal(list_take(&list, TYPING_ESCAPE, STR("")), LIST_LEFT);
	assert_int_equal(list_take(&list, TYPING_INTERRUPT, STR("")), LIST_LEFT);
	list_fini(&list);
}

static void ten_rows_at_most_and_the_chosen_is_among_them(void **state)
{
	struct list list;

	(void)state;
	list_init(&list, "N");
	for (int i = 0; i < 30; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "n%d", i);
		list_add(&list, str_of(name), STR(""));
	}
	for (int i = 0; i < 12; i++)
		(void)list_take(&list, TYPING_DOWN, STR(""));
	shows(&list, 80, 24,
	      "N: \n  n3\n  n4\n  n5\n  n6\n  n7\n  n8\n  n9\n  n10\n  n11\n> n12\n  13 of 30\n");
	/* In a small window fewer, and never more rows than it has. */
	shows(&list, 80, 5, "N: \n  n10\n  n11\n> n12\n  13 of 30\n");
	shows(&list, 80, 2, "N: \n> n12\n");
	list_fini(&list);
}

static void long_rows_are_cut(void **state)
{
	struct list list;

	(void)state;
	list_init(&list, "A title that is long");
	list_add(&list, STR("a text that is longer than the window"), STR("detail"));
	shows(&list, 20, 24, "A title that is...\n> a text that is...\n");
	list_fini(&list);
}

static void the_persons_theme_gives_the_colours(void **state)
{
	static const char file[] =
		"{\"base\": \"plain\", \"bold\": \"bold magenta\", \"dim\": \"blue\"}";
	struct err err = {0};
	struct theme theme;
	struct list list;

	(void)state;
	assert_true(theme_parse(str_of(file), false, &theme, &err));
	list_init(&list, "N");
	list_add(&list, STR("a"), STR("b"));
	shows_as(&list,
		 &(struct line_look){.columns = 80, .rows = 24, .colour = true, .theme = &theme},
		 "\x1b[1;35mN: \x1b[0m\n\x1b[1;35m> \x1b[0m\x1b[1;35ma\x1b[0m  "
		 "\x1b[34mb\x1b[0m\n");
	list_fini(&list);
}

static void without_a_cursor_the_items_have_numbers(void **state)
{
	struct list list;
	struct buf out;

	(void)state;
	fill(&list);
	buf_init(&out, 4096);
	list_print(&list, &out);
	assert_string_equal(out.data, "Things:\n  1  apple pie  sweet, 3 h\n"
				      "  2  Apple\\x1B[31m tree  tall\n  3  pear\n");
	buf_fini(&out);
	list_fini(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(typed_words_filter),
		cmocka_unit_test(arrows_go_round),
		cmocka_unit_test(ten_rows_at_most_and_the_chosen_is_among_them),
		cmocka_unit_test(long_rows_are_cut),
		cmocka_unit_test(the_persons_theme_gives_the_colours),
		cmocka_unit_test(without_a_cursor_the_items_have_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
