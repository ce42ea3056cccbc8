/* footer: the parts of the last row, and which of them fit. */
#include "tui/region/footer.h"

#include "base/str.h"
#include "tui/paint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void shows(const struct footer *footer, bool colour, bool unicode, size_t columns,
		  const char *row)
{
	struct paint paint;

	paint_init(&paint);
	paint.colour = colour;
	paint.unicode = unicode;
	footer_paint(footer, &paint, columns);
	assert_string_equal(paint.out.data, row);
	paint_fini(&paint);
}

static void parts_that_do_not_fit_are_left_out_from_the_right(void **state)
{
	struct footer footer = {0};

	(void)state;
	shows(&footer, false, true, 80, "");
	footer_add(&footer, PAINT_DIM, STR("coder"));
	footer_add(&footer, PAINT_DIM, STR(""));
	footer_add(&footer, PAINT_DIM, STR("a model"));
	footer_add(&footer, PAINT_DIM, STR("L3"));
	shows(&footer, false, true, 22, "  coder · a model · L3");
	shows(&footer, false, true, 21, "  coder · a model");
	shows(&footer, false, true, 10, "  coder");
	shows(&footer, false, true, 6, "");
	shows(&footer, false, false, 80, "  coder, a model, L3");
}

static void a_part_has_its_colour(void **state)
{
	struct footer footer = {0};

	(void)state;
	footer_add(&footer, PAINT_ERROR, STR("90 % of 1k"));
	footer_add(&footer, PAINT_PLAIN, STR("L3"));
	shows(&footer, true, true, 80,
	      "\x1b[2m  \x1b[0m\x1b[31m90 % of 1k\x1b[0m\x1b[2m · \x1b[0mL3");
}

static void foreign_bytes_are_safe_short_and_few(void **state)
{
	struct footer footer = {0};

	(void)state;
	footer_add(&footer, PAINT_PLAIN, STR("a\x1b[2J\nb"));
	footer_add(&footer, PAINT_PLAIN, STR("0123456789012345678901234567890123456789"));
	shows(&footer, false, true, 80,
	      "  a\\x1B[2J\\x0Ab · 01234567890123456789012345678...");
	for (size_t i = 0; i < 2 * FOOTER_PARTS_MAX; i++)
		footer_add(&footer, PAINT_PLAIN, STR("x"));
	assert_int_equal(footer.count, FOOTER_PARTS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_that_do_not_fit_are_left_out_from_the_right),
		cmocka_unit_test(a_part_has_its_colour),
		cmocka_unit_test(foreign_bytes_are_safe_short_and_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
