/* Tests of serve/spool: the newest bytes stay, in their order, and a late reader sees what it missed. */
#include "../base/unit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "serve/spool.h"

enum { ALL = 5 * SPOOL_BYTES / 2 };

/* The byte at position AT of what is printed. */
static char byte_at(uint64_t at)
{
	return (char)(at % 61 == 60 ? '\n' : 'a' + at % 23);
}

/* Print SIZE bytes more, with room for them where GROWS. */
static void print(struct spool *spool, size_t size, bool grows)
{
	char *bytes = malloc(size + 1);

	assert_non_null(bytes);
	for (size_t i = 0; i < size; i++)
		bytes[i] = byte_at(spool->total + i);
	if (grows)
		spool_grow(spool, spool_wants(spool, size));
	spool_add(spool, (struct str){bytes, size});
	free(bytes);
}

/* Read everything from AT on, and return how much that was. */
static uint64_t read_from(const struct spool *spool, uint64_t at)
{
	const uint64_t began = at;

	while (at < spool->total) {
		const struct str piece = spool_piece(spool, at, 1000);

		assert_true(piece.size > 0);
		for (size_t i = 0; i < piece.size; i++)
			assert_int_equal(piece.data[i], byte_at(at + i));
		at += piece.size;
	}
	return at - began;
}

static void an_empty_spool_has_nothing(void **state)
{
	struct spool spool = {0};

	(void)state;
	assert_int_equal(spool_first(&spool), 0);
	assert_int_equal(spool_begin(&spool, 0), 0);
	assert_int_equal(spool_begin(&spool, 9), 0);
	assert_int_equal(spool_piece(&spool, 0, 10).size, 0);
	spool_fini(&spool);
}

static void the_newest_bytes_stay_whatever_the_pieces_are(void **state)
{
	static const size_t pieces[] = {
		1, 61, 4096, 65536, 65537, SPOOL_BYTES, 2 * SPOOL_BYTES + 7};

	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct spool spool = {0};

		/* Single bytes only until it is full. */
		while (spool.total < (pieces[i] == 1 ? 5000 : ALL))
			print(&spool, pieces[i], true);
		assert_true(spool.capacity <= SPOOL_BYTES);
		assert_int_equal(read_from(&spool, spool_first(&spool)),
				 spool.total < SPOOL_BYTES ? spool.total : SPOOL_BYTES);
		spool_fini(&spool);
	}
}

static void a_reader_that_is_too_late_begins_at_a_line(void **state)
{
	struct spool spool = {0};
	uint64_t at;

	(void)state;
	print(&spool, ALL, true);
	at = spool_begin(&spool, 5);
	assert_true(at > spool_first(&spool) && at - spool_first(&spool) <= 61);
	assert_int_equal(byte_at(at - 1), '\n');
	assert_int_equal(read_from(&spool, at), spool.total - at);
	assert_int_equal(spool_begin(&spool, spool.total - 3), spool.total - 3);
	assert_int_equal(spool_begin(&spool, spool.total + 3), spool.total);
	assert_int_equal(spool_piece(&spool, 5, 10).size, 0);
	spool_fini(&spool);
}

static void without_more_room_the_newest_bytes_stay(void **state)
{
	struct spool spool = {0};

	(void)state;
	print(&spool, 100, false);
	assert_int_equal(spool.total, 100);
	assert_int_equal(spool_first(&spool), 100);
	spool_fini(&spool);
	print(&spool, 1000, true);
	print(&spool, 10000, false);
	assert_int_equal(spool.total, 11000);
	assert_int_equal(read_from(&spool, spool_first(&spool)), spool.capacity);
	/* It grows no more: the bytes would lie elsewhere. */
	print(&spool, 10000, true);
	assert_int_equal(read_from(&spool, spool_first(&spool)), spool.capacity);
	spool_fini(&spool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_spool_has_nothing),
		cmocka_unit_test(the_newest_bytes_stay_whatever_the_pieces_are),
		cmocka_unit_test(a_reader_that_is_too_late_begins_at_a_line),
		cmocka_unit_test(without_more_room_the_newest_bytes_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
