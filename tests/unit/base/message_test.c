/* Tests of base/message: what comes out is what went in, descriptors included. */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct note {
	int number;
	char text[8];
};

static void pair(int ends[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

static void a_message_arrives_with_its_descriptors(void **state)
{
	const struct note sent = {7, "seven"};
	struct note came;
	int ends[2], pipes[2], fds[2];
	char byte;

	(void)state;
	pair(ends);
	assert_true(fd_pipe(pipes, NULL));
	assert_true(fd_message_send(ends[0], &sent, sizeof(sent), &pipes[0], 1, 0));
	assert_true(fd_message_receive(ends[1], &came, sizeof(came), fds, 2, MSG_DONTWAIT));
	assert_int_equal(came.number, 7);
	assert_string_equal(came.text, "seven");
	assert_int_equal(write(pipes[1], "x", 1), 1);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	assert_int_equal(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
	assert_int_equal(fds[1], -1);
	fd_close(&fds[0]);
	for (int i = 0; i < 2; i++) {
		fd_close(&ends[i]);
		fd_close(&pipes[i]);
	}
}

static void descriptors_nobody_wants_are_closed(void **state)
{
	const struct note sent = {1, ""};
	struct note came;
	int ends[2], pipes[2], fds[1];
	char byte;

	(void)state;
	pair(ends);
	assert_true(fd_pipe(pipes, NULL));
	const int twice[] = {pipes[1], pipes[1]};
	assert_true(fd_message_send(ends[0], &sent, sizeof(sent), twice, 2, 0));
	assert_true(fd_message_receive(ends[1], &came, sizeof(came), fds, 1, 0));
	fd_close(&fds[0]);
	fd_close(&pipes[1]);
	/* The end of the pipe is there: the second copy is gone too. */
	assert_int_equal(read(pipes[0], &byte, 1), 0);
	fd_close(&pipes[0]);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

static void another_size_is_no_message_and_leaks_nothing(void **state)
{
	struct note came;
	int ends[2], pipes[2], fds[1];
	char byte, large[sizeof(came) + 1] = {0};

	(void)state;
	pair(ends);
	assert_true(fd_pipe(pipes, NULL));
	assert_true(fd_message_send(ends[0], "short", 5, &pipes[1], 1, 0));
	assert_true(fd_message_send(ends[0], large, sizeof(large), &pipes[1], 1, 0));
	fd_close(&pipes[1]);
	for (int i = 0; i < 2; i++) {
		assert_false(fd_message_receive(ends[1], &came, sizeof(came), fds, 1, 0));
		assert_int_equal(errno, ECONNRESET);
		assert_int_equal(fds[0], -1);
	}
	assert_int_equal(read(pipes[0], &byte, 1), 0);
	fd_close(&pipes[0]);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

static void nothing_yet_and_the_end_are_told_apart(void **state)
{
	struct note came;
	int ends[2], fds[1];

	(void)state;
	pair(ends);
	assert_false(fd_message_receive(ends[1], &came, sizeof(came), fds, 1, MSG_DONTWAIT));
	assert_int_equal(errno, EAGAIN);
	fd_close(&ends[0]);
	assert_false(fd_message_receive(ends[1], &came, sizeof(came), fds, 1, MSG_DONTWAIT));
	assert_int_equal(errno, ECONNRESET);
	assert_false(fd_message_send(ends[1], "x", 1, NULL, 0, 0));
	assert_int_equal(errno, EPIPE);
	fd_close(&ends[1]);
}

static void the_last_words_of_an_end_that_left_messages_unread_arrive(void **state)
{
	const struct note sent = {7, "seven"};
	struct note came = {0};
	int ends[2];

	(void)state;
	pair(ends);
	assert_true(fd_message_send(ends[1], &sent, sizeof(sent), NULL, 0, 0));
	assert_true(fd_message_send(ends[0], &sent, sizeof(sent), NULL, 0, 0));
	fd_close(&ends[0]);
	assert_true(fd_message_receive(ends[1], &came, sizeof(came), NULL, 0, MSG_DONTWAIT));
	assert_int_equal(came.number, 7);
	assert_false(
		fd_message_receive(ends[1], &came, sizeof(came), NULL, 0, MSG_DONTWAIT));
	assert_int_equal(errno, ECONNRESET);
	fd_close(&ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_arrives_with_its_descriptors),
		cmocka_unit_test(descriptors_nobody_wants_are_closed),
		cmocka_unit_test(another_size_is_no_message_and_leaks_nothing),
		cmocka_unit_test(nothing_yet_and_the_end_are_told_apart),
		cmocka_unit_test(the_last_words_of_an_end_that_left_messages_unread_arrive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
