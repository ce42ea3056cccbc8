/* backlog: what waits for a terminal that takes nothing, with a gap in its middle. */
#include "tui/backlog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 2000, OUT_MAX = 100000 };

static void add_numbers(struct backlog *backlog, unsigned from, unsigned to)
{
	struct buf line;

	buf_init(&line, 100);
	for (unsigned i = from; i <= to; i++) {
		buf_clear(&line);
		(void)buf_addf(&line, "line %u\n", i);
		backlog_add(backlog, buf_str(&line));
	}
	buf_fini(&line);
}

static void what_fits_comes_out_as_it_was(void **state)
{
	struct backlog backlog;
	struct buf out;

	(void)state;
	backlog_init(&backlog, MOST, true);
	buf_init(&out, OUT_MAX);
	assert_true(backlog_is_empty(&backlog));
	backlog_add(&backlog, STR("a\nb"));
	backlog_add(&backlog, STR("c\nd"));
	assert_false(backlog_is_empty(&backlog));
	backlog_take(&backlog, 4, &out);
	assert_string_equal(out.data, "a\n");
	backlog_take(&backlog, 100, &out);
	assert_string_equal(out.data, "a\nbc\nd");
	assert_true(backlog_is_empty(&backlog));
	buf_fini(&out);
	backlog_fini(&backlog);
}

static void a_long_line_is_not_cut(void **state)
{
	struct backlog backlog;
	struct buf out;

	(void)state;
	backlog_init(&backlog, MOST, true);
	buf_init(&out, OUT_MAX);
	backlog_add(&backlog, STR("a long line\nb\n"));
	backlog_take(&backlog, 4, &out);
	assert_string_equal(out.data, "a long line\n");
	buf_fini(&out);
	backlog_fini(&backlog);
}

/* Lines are there once and in order, but for those that the gap counts. */
static void the_gap_says_how_much_is_missing(void **state)
{
	struct backlog backlog;
	unsigned number, next = 1, most = 1000, missing;
	char unit[8];
	struct str rest, line;
	size_t gaps = 0;
	struct buf out;

	(void)state;
	backlog_init(&backlog, MOST, true);
	buf_init(&out, OUT_MAX);
	add_numbers(&backlog, 1, most);
	while (!backlog_is_empty(&backlog))
		backlog_take(&backlog, 300, &out);
	assert_true(out.size > MOST / 2 && out.size < MOST + 100);
	rest = buf_str(&out);
	while (str_next_line(&rest, &line)) {
		char text[100] = "";

		memcpy(text, line.data, line.size);
		if (sscanf(text, "\x1b[0m[%u lines, %*f %7[^,], left out", &missing,
			   unit) == 2) {
			gaps++;
			next += missing;
			continue;
		}
		assert_int_equal(sscanf(text, "line %u", &number), 1);
		assert_int_equal(number, next++);
	}
	assert_int_equal(gaps, 1);
	assert_int_equal(next, most + 1);
	backlog_add(&backlog, STR("again\n"));
	buf_clear(&out);
	backlog_take(&backlog, 300, &out);
	assert_string_equal(out.data, "again\n");
	buf_fini(&out);
	backlog_fini(&backlog);
}

static void a_piece_that_is_larger_than_all_leaves_its_end(void **state)
{
	struct backlog backlog;
	struct buf out, piece;

	(void)state;
	backlog_init(&backlog, MOST, false);
	buf_init(&out, OUT_MAX);
	buf_init(&piece, OUT_MAX);
	for (size_t i = 0; i < 10000; i++)
		(void)buf_addf(&piece, "%zu\n", i);
	backlog_add(&backlog, STR("first\n"));
	backlog_add(&backlog, buf_str(&piece));
	backlog_add(&backlog, STR("last\n"));
	while (!backlog_is_empty(&backlog))
		backlog_take(&backlog, 300, &out);
	assert_true(str_starts(buf_str(&out), STR("first\n[")));
	assert_true(str_ends(buf_str(&out), STR("\n9999\nlast\n")));
	buf_fini(&piece);
	buf_fini(&out);
	backlog_fini(&backlog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_comes_out_as_it_was),
		cmocka_unit_test(a_long_line_is_not_cut),
		cmocka_unit_test(the_gap_says_how_much_is_missing),
		cmocka_unit_test(a_piece_that_is_larger_than_all_leaves_its_end),
	};

	return cmocka_run_group_tests_name("backlog", tests, NULL, NULL);
}
