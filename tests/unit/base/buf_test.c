/* Tests of base/buf. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

static void an_empty_buffer_is_a_c_string(void **state)
{
	struct buf buf;

	(void)state;
	buf_init(&buf, 10);
	assert_string_equal(buf.data, "");
	assert_int_equal(buf.capacity, 0);
	buf_clear(&buf);
	buf_truncate(&buf, 0);
	buf_remove(&buf, 0, 0);
	buf_commit(&buf, 0);
	assert_string_equal(buf.data, "");
	buf_fini(&buf);
	assert_string_equal(buf.data, "");
	buf_fini(&buf);
}

static void ends_of_null_and_zero_are_fine(void **state)
{
	struct buf zero = {0};

	(void)state;
	buf_fini(NULL);
	buf_fini(&zero);
	assert_int_equal(zero.size, 0);
	/* What has ended may begin again. */
	buf_init(&zero, 8);
	assert_true(buf_adds(&zero, "again"));
	assert_string_equal(zero.data, "again");
	buf_fini(&zero);
	buf_fini(&zero);
	assert_int_equal(zero.size, 0);
}

static void adds_every_kind_of_piece(void **state)
{
	struct buf buf;

	(void)state;
	buf_init(&buf, 1000);
	assert_true(buf_add(&buf, "a\0b", 3));
	assert_true(buf_adds(&buf, "cd"));
	assert_true(buf_addstr(&buf, STR("ef")));
	assert_true(buf_addstr(&buf, (struct str){NULL, 0}));
	assert_true(buf_addc(&buf, 'g'));
	assert_true(buf_addf(&buf, "%d%s", 12, ""));
	assert_true(str_equal(buf_str(&buf), STR("a\0bcdefg12")));
	assert_int_equal(buf.data[buf.size], 0);
	buf_fini(&buf);
}

static void stops_at_its_ceiling(void **state)
{
	struct buf buf;

	(void)state;
	buf_init(&buf, 5);
	assert_true(buf_adds(&buf, "1234"));
	assert_false(buf.overflowed);
	assert_false(buf_adds(&buf, "56"));
	assert_true(buf.overflowed);
	assert_string_equal(buf.data, "1234");
	/* Smaller pieces still go in, and the mark stays. */
	assert_true(buf_adds(&buf, "5"));
	assert_true(buf.overflowed);
	assert_string_equal(buf.data, "12345");
	assert_true(buf_adds(&buf, ""));
	assert_false(buf_addc(&buf, '6'));
	buf_clear(&buf);
	assert_false(buf.overflowed);
	assert_string_equal(buf.data, "");
	buf_fini(&buf);
}

static void formatted_pieces_stop_at_the_ceiling_too(void **state)
{
	struct buf buf;

	(void)state;
	buf_init(&buf, 100);
	assert_true(buf_adds(&buf, "start"));
	/* More than the room there is, and than the ceiling. */
	assert_false(buf_addf(&buf, "%200d", 1));
	assert_true(buf.overflowed);
	assert_string_equal(buf.data, "start");
	assert_true(buf_addf(&buf, "%95d", 1));
	assert_int_equal(buf.size, 100);
	assert_int_equal(buf.data[100], 0);
	assert_false(buf_addf(&buf, "%d", 1));
	assert_int_equal(strlen(buf.data), 100);
	buf_fini(&buf);
}

static void what_is_exchanged_keeps_its_ceilings(void **state)
{
	struct buf a, b;

	(void)state;
	buf_init(&a, 100);
	buf_init(&b, 10);
	assert_true(buf_adds(&a, "held"));
	buf_swap(&a, &b);
	assert_string_equal(b.data, "held");
	assert_string_equal(a.data, "");
	assert_int_equal(a.size, 0);
	assert_false(buf_adds(&b, " longer"));
	assert_true(buf_adds(&a, "longer than ten bytes"));
	buf_fini(&a);
	buf_fini(&b);
}

static void a_ceiling_of_zero_takes_nothing(void **state)
{
	struct buf buf;

	(void)state;
	buf_init(&buf, 0);
	assert_true(buf_adds(&buf, ""));
	assert_true(buf_addf(&buf, "%s", ""));
	assert_false(buf_addc(&buf, 'x'));
	assert_false(buf_addf(&buf, "x"));
	assert_null(buf_reserve(&buf, 1));
	assert_string_equal(buf.data, "");
	buf_fini(&buf);
}

static void no_ceiling_does_not_overflow_sizes(void **state)
{
	struct buf buf;

	(void)state;
	buf_init(&buf, SIZE_MAX);
	assert_true(buf_adds(&buf, "x"));
	assert_null(buf_reserve(&buf, SIZE_MAX));
	assert_true(buf.overflowed);
	assert_string_equal(buf.data, "x");
	buf_fini(&buf);
}

static void reserved_room_counts_when_committed(void **state)
{
	struct buf buf;
	char *room;

	(void)state;
	buf_init(&buf, 100);
	room = buf_reserve(&buf, 50);
	assert_non_null(room);
	assert_string_equal(buf.data, "");
	memset(room, 'x', 50);
	buf_commit(&buf, 3);
	assert_string_equal(buf.data, "xxx");
	assert_null(buf_reserve(&buf, 98));
	assert_non_null(buf_reserve(&buf, 97));
	buf_fini(&buf);
}

static void removes_from_the_middle_and_the_ends(void **state)
{
	struct buf buf;

	(void)state;
	buf_init(&buf, 100);
	buf_adds(&buf, "0123456789");
	buf_remove(&buf, 3, 4);
	assert_string_equal(buf.data, "012789");
	buf_remove(&buf, 4, 2);
	assert_string_equal(buf.data, "0127");
	buf_remove(&buf, 0, 1);
	assert_string_equal(buf.data, "127");
	buf_truncate(&buf, 1);
	assert_string_equal(buf.data, "1");
	buf_remove(&buf, 0, 1);
	assert_string_equal(buf.data, "");
	buf_fini(&buf);
}

static void taking_leaves_an_empty_buffer(void **state)
{
	struct buf buf;
	char *taken;

	(void)state;
	buf_init(&buf, 10);
	taken = buf_take(&buf);
	assert_string_equal(taken, "");
	free(taken);
	buf_adds(&buf, "mine");
	taken = buf_take(&buf);
	assert_string_equal(taken, "mine");
	free(taken);
	assert_int_equal(buf.size, 0);
	assert_int_equal(buf.max, 10);
	assert_true(buf_adds(&buf, "more"));
	buf_fini(&buf);
}

static void grows_to_large_sizes(void **state)
{
	struct buf buf;

	(void)state;
	buf_init(&buf, 1 << 20);
	for (int i = 0; i < (1 << 17); i++)
		assert_true(buf_add(&buf, "01234567", 8));
	assert_false(buf_addc(&buf, 'x'));
	assert_int_equal(strlen(buf.data), 1 << 20);
	assert_true(buf.capacity <= (1 << 20) + 1);
	buf_fini(&buf);
}

static void lines_come_out_of_pieces(void **state)
{
	static const char whole[] = "one\n\nthree is too long\nfour\nrest";
	static const char *const wanted[] = {"one", "", NULL, "four"};
	const size_t size = strlen(whole);

	(void)state;
	/* At every place the text can be cut in two. */
	for (size_t cut = 0; cut <= size; cut++) {
		struct str pieces[] = {{whole, cut}, {whole + cut, size - cut}};
		struct buf line;
		size_t count = 0;

		buf_init(&line, 8);
		for (size_t i = 0; i < UNIT_COUNT(pieces); i++) {
			while (buf_take_line(&line, &pieces[i])) {
				assert_true(count < UNIT_COUNT(wanted));
				assert_int_equal(line.overflowed, wanted[count] == NULL);
				if (wanted[count] != NULL)
					assert_string_equal(line.data, wanted[count]);
				count++;
				buf_clear(&line);
			}
			assert_int_equal(pieces[i].size, 0);
		}
		assert_int_equal(count, UNIT_COUNT(wanted));
		assert_string_equal(line.data, "rest");
		buf_fini(&line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_out_of_pieces),
		cmocka_unit_test(an_empty_buffer_is_a_c_string),
		cmocka_unit_test(ends_of_null_and_zero_are_fine),
		cmocka_unit_test(adds_every_kind_of_piece),
		cmocka_unit_test(stops_at_its_ceiling),
		cmocka_unit_test(formatted_pieces_stop_at_the_ceiling_too),
		cmocka_unit_test(what_is_exchanged_keeps_its_ceilings),
		cmocka_unit_test(a_ceiling_of_zero_takes_nothing),
		cmocka_unit_test(no_ceiling_does_not_overflow_sizes),
		cmocka_unit_test(reserved_room_counts_when_committed),
		cmocka_unit_test(removes_from_the_middle_and_the_ends),
		cmocka_unit_test(taking_leaves_an_empty_buffer),
		cmocka_unit_test(grows_to_large_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
