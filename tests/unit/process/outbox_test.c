/* Tests of process/outbox: lines wait for their reader, and none is lost or torn. */
#include "../base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "process/loop.h"
#include "process/outbox.h"

enum { LINE = 3000, LINES = 100, ROOM = LINES * (LINE + 1) };

static void add_lines(struct outbox *outbox, int count)
{
	struct buf line;

	buf_init(&line, LINE);
	for (int i = 0; i < count; i++) {
		buf_clear(&line);
		for (int j = 0; j < LINE; j++)
			assert_true(buf_addc(&line, (char)('a' + i % 26)));
		outbox_take_line(outbox, &line);
	}
	buf_fini(&line);
}

/* Read all lines from FD, while the loop writes. */
static void check_lines(struct loop *loop, const struct outbox *outbox, int fd, int count)
{
	struct buf text;
	char bytes[1000];

	buf_init(&text, ROOM);
	while (text.size < (size_t)count * (LINE + 1)) {
		const ssize_t n = read(fd, bytes, sizeof(bytes));

		if (n > 0)
			assert_true(buf_add(&text, bytes, (size_t)n));
		loop_turn(loop, clock_now_ms());
	}
	for (int i = 0; i < count; i++) {
		const char *line = text.data + (size_t)i * (LINE + 1);

		assert_int_equal(line[0], 'a' + i % 26);
		assert_int_equal(line[LINE - 1], 'a' + i % 26);
		assert_int_equal(line[LINE], '\n');
	}
	assert_int_equal(outbox_size(outbox), 0);
	assert_int_equal(outbox->gone, 0);
	assert_int_equal(outbox->written, text.size);
	buf_fini(&text);
}

static void a_slow_reader_gets_every_line(void **state)
{
	struct loop *loop = loop_new();
	struct outbox outbox;
	int ends[2];

	(void)state;
	for (int kind = 0; kind < 2; kind++) {
		if (kind == 0)
			assert_true(fd_pipe(ends, NULL));
		else
			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		if (kind == 1) { /* the first end of a socket pair writes as well */
			const int end = ends[0];

			ends[0] = ends[1];
			ends[1] = end;
		}
		assert_true(fd_set_blocking(ends[0], false, NULL));
		outbox_open(&outbox, loop, ends[1], ROOM);
		add_lines(&outbox, LINES);
		outbox_write(&outbox);
		assert_true(outbox_size(&outbox) > 0);
		check_lines(loop, &outbox, ends[0], LINES);
		outbox_close(&outbox);
		assert_int_equal(fcntl(ends[1], F_GETFD) >= 0, 1);
		close(ends[0]);
		close(ends[1]);
	}
	loop_free(loop);
}

static void what_is_over_the_ceiling_ends_it(void **state)
{
	struct loop *loop = loop_new();
	struct outbox outbox;
	int ends[2];

	(void)state;
	assert_true(fd_pipe(ends, NULL));
	outbox_open(&outbox, loop, ends[1], 2 * LINE);
	add_lines(&outbox, 1);
	assert_int_equal(outbox.gone, 0);
	add_lines(&outbox, 1);
	assert_int_equal(outbox.gone, ENOBUFS);
	add_lines(&outbox, 1);
	assert_true(outbox_size(&outbox) <= 2 * LINE);
	outbox_close(&outbox);
	close(ends[0]);
	close(ends[1]);
	loop_free(loop);
}

static void a_reader_that_is_gone_is_told(void **state)
{
	struct loop *loop = loop_new();
	struct outbox outbox;
	int ends[2];

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	assert_true(fd_pipe(ends, NULL));
	outbox_open(&outbox, loop, ends[1], ROOM);
	close(ends[0]);
	add_lines(&outbox, 1);
	outbox_write(&outbox);
	assert_int_equal(outbox.gone, EPIPE);
	outbox_close(&outbox);
	outbox_close(&outbox);
	close(ends[1]);
	loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_reader_gets_every_line),
		cmocka_unit_test(what_is_over_the_ceiling_ends_it),
		cmocka_unit_test(a_reader_that_is_gone_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
