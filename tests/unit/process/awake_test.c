/* Tests of process/awake: what is there ends the wait, and so does its end. */
#include "../base/unit.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "process/loop.h"

enum { STAY_US = 3000 };

static int open_pipe(void **state)
{
	static int ends[2];

	*state = ends;
	return fd_pipe(ends, NULL) ? 0 : -1;
}

static int close_pipe(void **state)
{
	int *ends = *state;

	fd_close(&ends[0]);
	fd_close(&ends[1]);
	return 0;
}

static void it_stays_as_long_as_it_was_told(void **state)
{
	const int *ends = *state;
	struct pollfd slot = {.fd = ends[0], .events = POLLIN};
	const int64_t until_us = clock_now_us() + STAY_US;

	assert_int_equal(loop_awake_poll(&slot, 1, until_us), 0);
	assert_true(clock_now_us() >= until_us);
}

static void what_is_there_ends_it_at_once(void **state)
{
	const int *ends = *state;
	struct pollfd slots[] = {{.fd = -1}, {.fd = ends[0], .events = POLLIN}};

	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(loop_awake_poll(slots, UNIT_COUNT(slots), INT64_MAX), 1);
	assert_int_equal(slots[1].revents, POLLIN);
}

static void the_end_of_the_other_side_ends_it(void **state)
{
	int *ends = *state;
	struct pollfd slot = {.fd = ends[0], .events = POLLIN};

	fd_close(&ends[1]);
	assert_int_equal(loop_awake_poll(&slot, 1, INT64_MAX), 1);
	assert_int_equal(slot.revents, POLLHUP);
}

/* Who was told too late sees what has come meanwhile. */
static void it_looks_once_at_least(void **state)
{
	const int *ends = *state;
	struct pollfd slot = {.fd = ends[0], .events = POLLIN};

	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(loop_awake_poll(&slot, 1, 0), 1);
}

static void what_comes_while_it_is_awake_is_seen(void **state)
{
	const int *ends = *state;
	struct pollfd slot = {.fd = ends[0], .events = POLLIN};
	const int64_t comes_us = clock_now_us() + STAY_US;
	const pid_t pid = fork();

	if (pid == 0) {
		while (clock_now_us() < comes_us)
			;
		_exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
	}
	assert_true(pid > 0);
	assert_int_equal(loop_awake_poll(&slot, 1, INT64_MAX), 1);
	assert_true(clock_now_us() >= comes_us);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

#define PIPED(test) cmocka_unit_test_setup_teardown(test, open_pipe, close_pipe)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PIPED(it_stays_as_long_as_it_was_told),
		PIPED(what_is_there_ends_it_at_once),
		PIPED(the_end_of_the_other_side_ends_it),
		PIPED(it_looks_once_at_least),
		PIPED(what_comes_while_it_is_awake_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
