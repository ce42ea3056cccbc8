/* Tests of process/frame: whole frames out of torn bytes, descriptors that never leak. */
#include "../base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "process/frame.h"

struct pair {
	int ends[2];
	struct frame_reader reader;
};

static int open_pair(void **state)
{
	struct pair *pair = memory_alloc(sizeof(*pair));

	frame_reader_init(&pair->reader);
	*state = pair;
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair->ends);
}

static int close_pair(void **state)
{
	struct pair *pair = *state;

	frame_reader_fini(&pair->reader);
	fd_close(&pair->ends[0]);
	fd_close(&pair->ends[1]);
	free(pair);
	return 0;
}

static size_t open_descriptors(void)
{
	size_t count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void a_frame_arrives_whole(void **state)
{
	struct pair *pair = *state;
	struct frame frame;
	struct err err;

	assert_true(frame_send(pair->ends[0], FRAME_RESULT, STR("hello"), NULL, 0,
			       CLOCK_NEVER, &err));
	assert_true(frame_wait(&pair->reader, pair->ends[1], clock_now_ms() + 30000,
			       &frame, &err));
	assert_int_equal(frame.kind, FRAME_RESULT);
	assert_true(str_is(frame.payload, "hello"));
	assert_false(frame_next(&pair->reader, &frame));
}

static void torn_bytes_are_put_together(void **state)
{
	static const unsigned char bytes[] = {
		FRAME_STDOUT, 0, 0, 0, 3, 0, 0, 0, 'a', 'b', 'c',
		FRAME_RESULT, 0, 0, 0, 0, 0, 0, 0};
	struct pair *pair = *state;
	struct frame frame;
	struct err err;
	size_t frames = 0;

	for (size_t i = 0; i < sizeof(bytes); i++) {
		assert_int_equal(write(pair->ends[0], bytes + i, 1), 1);
		assert_true(frame_fill(&pair->reader, pair->ends[1], &err));
		while (frame_next(&pair->reader, &frame)) {
			frames++;
			if (frame.kind == FRAME_STDOUT) {
				assert_int_equal(i, 10);
				assert_true(str_is(frame.payload, "abc"));
			}
		}
	}
	assert_int_equal(frames, 2);
}

static void send_slowly(struct pair *pair, const unsigned char *bytes, size_t size)
{
	enum { PIECE = 64 << 10 };
	struct err err;

	for (size_t at = 0; at < size; at += PIECE) {
		const size_t piece = size - at < PIECE ? size - at : PIECE;

		assert_int_equal(write(pair->ends[0], bytes + at, piece), piece);
		assert_true(frame_fill(&pair->reader, pair->ends[1], &err));
	}
}

static void memory_of_a_large_frame_is_given_back_when_it_is_done(void **state)
{
	enum { SIZE = FRAME_HEADER + (2 << 20) };
	static const unsigned char small[] = {FRAME_STDOUT, 0, 0, 0, 1, 0, 0, 0, 'a'};
	struct pair *pair = *state;
	auto_free unsigned char *large = memory_alloc(SIZE);
	struct frame frame;

	large[0] = FRAME_RESULT;
	large[6] = (2 << 20) >> 16;
	send_slowly(pair, large, SIZE);
	assert_true(frame_next(&pair->reader, &frame));
	assert_int_equal(frame.payload.size, 2 << 20);
	assert_true(pair->reader.bytes.capacity >= SIZE);
	frame_done(&pair->reader);
	assert_int_equal(pair->reader.bytes.capacity, 0);
	/* Little is kept, and what came behind it too. */
	send_slowly(pair, small, sizeof(small));
	assert_true(frame_next(&pair->reader, &frame));
	frame_done(&pair->reader);
	assert_true(pair->reader.bytes.capacity > 0);
	send_slowly(pair, large, SIZE);
	send_slowly(pair, small, sizeof(small));
	assert_true(frame_next(&pair->reader, &frame));
	assert_int_equal(frame.kind, FRAME_RESULT);
	frame_done(&pair->reader);
	assert_true(frame_next(&pair->reader, &frame));
	assert_true(str_is(frame.payload, "a"));
}

static void a_broken_header_is_refused(void **state)
{
	static const unsigned char broken[][FRAME_HEADER] = {
		{0, 0, 0, 0, 0, 0, 0, 0},
		{FRAME_CANCEL + 1, 0, 0, 0, 0, 0, 0, 0},
		{FRAME_RESULT, 1, 0, 0, 0, 0, 0, 0},
		{FRAME_RESULT, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(broken); i++) {
		void *inner;
		struct err err = {0};
		struct frame frame;
		assert_int_equal(open_pair(&inner), 0);
		struct pair *pair = inner;
		assert_int_equal(write(pair->ends[0], broken[i], FRAME_HEADER),
				 FRAME_HEADER);
		assert_false(frame_wait(&pair->reader, pair->ends[1],
					clock_now_ms() + 30000, &frame, &err));
		assert_int_equal(err.code, EPROTO);
		assert_int_equal(close_pair(&inner), 0);
	}
}

static void a_frame_over_the_ceiling_is_not_sent(void **state)
{
	struct pair *pair = *state;
	struct err err;

	assert_false(frame_send(pair->ends[0], FRAME_CALL,
				(struct str){"", (size_t)FRAME_MAX + 1}, NULL, 0,
				CLOCK_NEVER, &err));
	assert_int_equal(err.code, EMSGSIZE);
}

static void descriptors_come_with_a_call(void **state)
{
	struct pair *pair = *state;
	auto_close int file = -1;
	struct frame frame;
	struct err err;
	char text[8] = {0};

	assert_true(fd_memory_file("frame", STR("content"), &file, &err));
	assert_true(frame_send(pair->ends[0], FRAME_CALL, STR("{}"), &file, 1,
			       CLOCK_NEVER, &err));
	assert_true(frame_wait(&pair->reader, pair->ends[1], clock_now_ms() + 30000,
			       &frame, &err));
	assert_int_equal(frame.fd_count, 1);
	assert_int_equal(pread(frame.fds[0], text, 7, 0), 7);
	assert_string_equal(text, "content");
	assert_true((fcntl(frame.fds[0], F_GETFD) & FD_CLOEXEC) != 0);
	fd_close(&frame.fds[0]);
}

static void descriptors_nobody_takes_are_closed(void **state)
{
	struct pair *pair = *state;
	size_t before = open_descriptors();
	const int three[] = {0, 1, 2};
	struct frame frame;
	struct err err;

	assert_true(frame_send(pair->ends[0], FRAME_STDOUT, STR("x"), three, 3,
			       CLOCK_NEVER, &err));
	assert_true(frame_wait(&pair->reader, pair->ends[1], clock_now_ms() + 30000,
			       &frame, &err));
	assert_int_equal(frame.fd_count, 0);
	assert_int_equal(open_descriptors(), before);
	assert_true(frame_send(pair->ends[0], FRAME_CALL, STR("x"), three, 3, CLOCK_NEVER,
			       &err));
	assert_true(frame_fill(&pair->reader, pair->ends[1], &err));
	frame_reader_fini(&pair->reader);
	frame_reader_init(&pair->reader);
	assert_int_equal(open_descriptors(), before);
}

static void the_end_of_the_other_side_is_seen(void **state)
{
	struct pair *pair = *state;
	struct frame frame;
	struct err err;

	fd_close(&pair->ends[0]);
	assert_false(frame_wait(&pair->reader, pair->ends[1], clock_now_ms() + 30000,
				&frame, &err));
	assert_int_equal(err.code, ECONNRESET);
}

static void waiting_ends_at_the_deadline(void **state)
{
	struct pair *pair = *state;
	struct frame frame;
	struct err err;

	assert_false(frame_wait(&pair->reader, pair->ends[1], clock_now_ms() + 20, &frame,
				&err));
	assert_int_equal(err.code, ETIMEDOUT);
}

static void a_reader_that_stops_cannot_hold_the_sender(void **state)
{
	struct pair *pair = *state;
	auto_free char *much = memory_alloc(8 << 20);
	struct err err;

	assert_false(frame_send(pair->ends[0], FRAME_CALL, (struct str){much, 8 << 20},
				NULL, 0, clock_now_ms() + 50, &err));
	assert_int_equal(err.code, ETIMEDOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_frame_arrives_whole, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(torn_bytes_are_put_together, open_pair,
						close_pair),
		cmocka_unit_test_setup_teardown(
			memory_of_a_large_frame_is_given_back_when_it_is_done, open_pair,
			close_pair),
		cmocka_unit_test(a_broken_header_is_refused),
		cmocka_unit_test_setup_teardown(a_frame_over_the_ceiling_is_not_sent,
						open_pair, close_pair),
		cmocka_unit_test_setup_teardown(descriptors_come_with_a_call, open_pair,
						close_pair),
		cmocka_unit_test_setup_teardown(descriptors_nobody_takes_are_closed,
						open_pair, close_pair),
		cmocka_unit_test_setup_teardown(the_end_of_the_other_side_is_seen,
						open_pair, close_pair),
		cmocka_unit_test_setup_teardown(waiting_ends_at_the_deadline, open_pair,
						close_pair),
		cmocka_unit_test_setup_teardown(a_reader_that_stops_cannot_hold_the_sender,
						open_pair, close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
