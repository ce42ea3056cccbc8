/* Tests of process/reading: a program at a terminal, and what it sleeps in. */
#include "../base/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "process/loop.h"
#include "process/pty.h"

enum { LONGEST_MS = 20000 };

static void read_it(void)
{
	char byte;

	(void)!read(STDIN_FILENO, &byte, 1);
}

static void read_dev_tty(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_CLOEXEC);
	char byte;

	(void)!read(fd, &byte, 1);
}

static void poll_it(void)
{
	struct pollfd fds[] = {{.fd = -1, .events = POLLIN},
			       {.fd = STDIN_FILENO, .events = POLLIN}};

	(void)poll(fds, 2, -1);
}

static void select_it(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(STDIN_FILENO, &set);
	(void)select(STDIN_FILENO + 1, &set, NULL, NULL, NULL);
}

static void epoll_it(void)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN};

	(void)epoll_ctl(fd, EPOLL_CTL_ADD, STDIN_FILENO, &event);
	(void)epoll_wait(fd, &event, 1, -1);
}

static void wait_for_a_signal(void)
{
	(void)pause();
}

static void wait_to_print(void)
{
	struct pollfd out = {.fd = STDIN_FILENO, .events = POLLPRI};

	(void)poll(&out, 1, -1);
}

/* A process of its own session at the terminal PTY, which does WHAT. */
static pid_t begin(const struct pty *pty, void (*what)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	(void)setsid();
	(void)ioctl(pty->slave, TIOCSCTTY, 0);
	(void)dup2(pty->slave, STDIN_FILENO);
	what();
	_exit(0);
}

static void end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static void open_terminal(struct pty *pty)
{
	const struct pty_size size = {24, 80};
	struct err err;

	assert_true(pty_open(pty, size, -1, -1, &err));
}

static void assert_waits(void (*what)(void))
{
	const int64_t until = clock_now_ms() + LONGEST_MS;
	struct reading first = {0}, second;
	struct pty pty;
	pid_t pid;

	open_terminal(&pty);
	pid = begin(&pty, what);
	while (first.pid == 0 && clock_now_ms() < until)
		first = reading_find(pty.master);
	assert_int_equal(first.pid, pid);
	second = reading_find(pty.master);
	assert_true(reading_is_same(&first, &second));
	end(pid);
	pty_close(&pty);
}

/* It sleeps, as /proc says, and nobody would type for that. */
static void assert_waits_for_something_else(void (*what)(void))
{
	const int64_t until = clock_now_ms() + LONGEST_MS;
	char path[64], text[256];
	struct pty pty;
	bool sleeps = false;
	pid_t pid;

	open_terminal(&pty);
	pid = begin(&pty, what);
	(void)snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
	/* pause or poll, with its number first: it has got there. */
	while (!sleeps && clock_now_ms() < until) {
		auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, text, sizeof(text) - 1);
		pid_t group = 0;

		text[n > 0 ? n : 0] = '\0';
		(void)ioctl(pty.master, TIOCGPGRP, &group);
		sleeps = group == pid && strncmp(text, "running", 7) != 0 && n > 0;
	}
	assert_true(sleeps);
	assert_int_equal(reading_find(pty.master).pid, 0);
	end(pid);
	pty_close(&pty);
}

static void a_read_of_the_terminal_waits_for_somebody(void **state)
{
	(void)state;
	assert_waits(read_it);
	assert_waits(read_dev_tty);
}

static void so_do_poll_select_and_epoll_for_one(void **state)
{
	(void)state;
	assert_waits(poll_it);
	assert_waits(select_it);
	assert_waits(epoll_it);
}

static void what_waits_for_something_else_does_not(void **state)
{
	(void)state;
	assert_waits_for_something_else(wait_for_a_signal);
	assert_waits_for_something_else(wait_to_print);
}

static void nobody_is_at_a_new_terminal(void **state)
{
	struct pty pty;

	(void)state;
	open_terminal(&pty);
	assert_int_equal(reading_find(pty.master).pid, 0);
	assert_int_equal(reading_find(-1).pid, 0);
	pty_close(&pty);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_read_of_the_terminal_waits_for_somebody),
		cmocka_unit_test(so_do_poll_select_and_epoll_for_one),
		cmocka_unit_test(what_waits_for_something_else_does_not),
		cmocka_unit_test(nobody_is_at_a_new_terminal),
	};

	return cmocka_run_group_tests_name("reading", tests, NULL, NULL);
}
