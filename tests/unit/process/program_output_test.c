/* Tests of process/program_output: the part of an output from a byte on. */
#include "../base/unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "process/follow.h"

struct stream {
	struct program_output output;
	int pipe[2];
};

static void stream_open(struct stream *stream)
{
	struct err err;

	*stream = (struct stream){.pipe = {-1, -1}};
	buf_init(&stream->output.head, PROGRAM_HEAD);
	assert_true(fd_pipe(stream->pipe, &err));
}

static void stream_close(struct stream *stream)
{
	program_output_fini(&stream->output);
	fd_close(&stream->pipe[0]);
	fd_close(&stream->pipe[1]);
}

/* COUNT bytes more, each the low byte of its place among all, modulo 251. */
static void feed(struct stream *stream, size_t count)
{
	char bytes[4096];
	struct str pieces[2];

	for (size_t size; count > 0; count -= size) {
		size = count < sizeof(bytes) ? count : sizeof(bytes);
		for (size_t i = 0; i < size; i++)
			bytes[i] = (char)((stream->output.total + i) % 251);
		assert_true(fd_write_all(stream->pipe[1], bytes, size, NULL));
		for (size_t got = 0; got < size;)
			got += (size_t)follow_output_read(&stream->output,
							  stream->pipe[0], pieces);
	}
}

static void assert_part(const struct stream *stream, uint64_t since, uint64_t missing)
{
	struct program_output part;
	struct buf tail;

	follow_output_since(&stream->output, since, &part);
	buf_init(&tail, PROGRAM_TAIL);
	follow_output_tail(&part, &tail);
	assert_int_equal(part.total, stream->output.total - since);
	assert_int_equal(follow_output_missing(&part), missing);
	for (size_t i = 0; i < part.head.size; i++)
		assert_int_equal((unsigned char)part.head.data[i], (since + i) % 251);
	for (size_t i = 0; i < tail.size; i++)
		assert_int_equal((unsigned char)tail.data[i],
				 (stream->output.total - tail.size + i) % 251);
	buf_fini(&tail);
	buf_fini(&part.head);
}

static void a_part_of_a_short_output_is_its_end(void **state)
{
	struct stream stream;

	(void)state;
	stream_open(&stream);
	feed(&stream, 1000);
	assert_part(&stream, 0, 0);
	assert_part(&stream, 999, 0);
	assert_part(&stream, 1000, 0);
	stream_close(&stream);
}

static void a_part_crosses_from_head_to_tail(void **state)
{
	struct stream stream;

	(void)state;
	stream_open(&stream);
	feed(&stream, PROGRAM_HEAD + 5000);
	assert_part(&stream, PROGRAM_HEAD - 10, 0);
	assert_part(&stream, PROGRAM_HEAD, 0);
	assert_part(&stream, PROGRAM_HEAD + 4000, 0);
	stream_close(&stream);
}

static void what_is_gone_from_the_middle_is_counted(void **state)
{
	const size_t gone = 100000;
	struct stream stream;

	(void)state;
	stream_open(&stream);
	feed(&stream, PROGRAM_HEAD + gone + PROGRAM_TAIL);
	assert_part(&stream, 0, gone);
	assert_part(&stream, PROGRAM_HEAD, gone);
	assert_part(&stream, PROGRAM_HEAD + gone - 1, 1);
	assert_part(&stream, PROGRAM_HEAD + gone, 0);
	assert_part(&stream, PROGRAM_HEAD + gone + PROGRAM_TAIL - 1, 0);
	stream_close(&stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_of_a_short_output_is_its_end),
		cmocka_unit_test(a_part_crosses_from_head_to_tail),
		cmocka_unit_test(what_is_gone_from_the_middle_is_counted),
	};

	return cmocka_run_group_tests_name("program_output", tests, NULL, NULL);
}
