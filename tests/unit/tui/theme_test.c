/* theme: the colours by the role of a text. */
#include "tui/theme.h"

#include "tui/paint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void the_names_are_those_that_exist(void **state)
{
	struct str rest = str_of(theme_names), name;
	size_t count = 0;

	(void)state;
	for (; str_next_word(&rest, &name); count++) {
		char text[16] = "";

		memcpy(text, name.data, name.size);
		assert_non_null(theme_shipped(text, false));
		assert_non_null(theme_shipped(text, true));
	}
	assert_int_equal(count, 3);
	assert_null(theme_shipped("darker", false));
}

static void plain_has_no_colour(void **state)
{
	(void)state;
	for (size_t role = 0; role < PAINT_STYLES; role++)
		assert_null(strchr(theme_shipped("plain", true)->codes[role], '3'));
}

static void a_text_has_the_colour_of_its_role(void **state)
{
	struct paint paint;

	(void)state;
	paint_init(&paint);
	paint.colour = true;
	paint_text(&paint, PAINT_ADDED, STR("+a"));
	assert_string_equal(paint.out.data, "\x1b[32m+a\x1b[0m");
	buf_clear(&paint.out);
	paint.theme = theme_shipped("light", true);
	paint_text(&paint, PAINT_ADDED, STR("+a"));
	assert_string_equal(paint.out.data, "\x1b[38;2;27;94;32m+a\x1b[0m");
	buf_clear(&paint.out);
	paint.theme = theme_shipped("plain", false);
	paint_text(&paint, PAINT_ADDED, STR("+a"));
	assert_string_equal(paint.out.data, "+a");
	paint_fini(&paint);
}

static void a_theme_of_a_person_is_read(void **state)
{
	static const struct {
		const char *words, *sixteen, *rgb;
	} rows[] = {
		{"red", "31", "31"},
		{"bold bright_red", "1;91", "1;91"},
		{"none", "", ""},
		{"bold none underline", "1;4", "1;4"},
		{"none bold", "1", "1"},
		{"#0000ff", "34", "38;2;0;0;255"},
		{"italic #C80a0a", "3;31", "3;38;2;200;10;10"},
		{"", "", ""},
	};
	struct err err = {0};
	struct theme theme;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf text;

		buf_init(&text, 1000);
		(void)buf_addf(&text, "{\"hunk\": \"%s\", /* mine */}", rows[i].words);
		assert_true(theme_parse(buf_str(&text), false, &theme, &err));
		assert_string_equal(theme.codes[PAINT_HUNK], rows[i].sixteen);
		assert_string_equal(theme.codes[PAINT_WARNING], "33");
		assert_true(theme_parse(buf_str(&text), true, &theme, &err));
		assert_string_equal(theme.codes[PAINT_HUNK], rows[i].rgb);
		buf_fini(&text);
	}
	assert_true(theme_parse(STR("{\"good\": \"blue\", \"base\": \"light\"}"), false,
				&theme, &err));
	assert_string_equal(theme.codes[PAINT_GOOD], "34");
	assert_string_equal(theme.codes[PAINT_WARNING], "35");
}

static void what_does_not_fit_is_named(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"[]", "/: must be an object, not array"},
		{"{\"eror\": \"red\"}", "/: there is no role \"eror\"; did you mean error"},
		{"{\"plain\": \"red\"}", "/: there is no role \"plain\""},
		{"{\"error\": 31}", "/error: must be text, not integer"},
		{"{\"base\": \"dusk\"}", "/base: must be one of: dark light plain"},
		{"{\"error\": \"red blue\"}",
		 "/error: \"red blue\" is no colour: at most one colour (red, bright_red, "
		 "#aa0000), and bold, dim, italic, underline"},
		{"{\"error\": \"#12345g\"}",
		 "/error: \"#12345g\" is no colour: at most one colour (red, bright_red, "
		 "#aa0000), and bold, dim, italic, underline"},
		{"{\"error\": \"bold bold bold bold bold bold bold bold bold bold bold "
		 "bold bold bold bold bold bold bold bold bold bold\"}",
		 NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = {0};
		struct theme theme;

		assert_false(theme_parse(str_of(rows[i].text), true, &theme, &err));
		if (rows[i].why != NULL)
			assert_string_equal(err.text, rows[i].why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_names_are_those_that_exist),
		cmocka_unit_test(plain_has_no_colour),
		cmocka_unit_test(a_text_has_the_colour_of_its_role),
		cmocka_unit_test(a_theme_of_a_person_is_read),
		cmocka_unit_test(what_does_not_fit_is_named),
	};

	return cmocka_run_group_tests_name("theme", tests, NULL, NULL);
}
