/* follow_program: ends of all kinds, and floods. */
#include "shell.h"

#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	/* By then a shell has begun, also on a machine with other work. */
	STARTED_MS = 2000,
	HANG_MS = 60000, /* far from for ever */
};

static void a_deadline_ends_it_in_time_with_its_output(void **state)
{
	struct shell_run shell;
	int64_t began = clock_now_ms();

	(void)state;
	shell_init(&shell, "echo before; sleep 600");
	shell.run.deadline_ms = began + STARTED_MS;
	shell_follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_TIMED_OUT);
	shell_assert_output(&shell.run.out, "before\n");
	assert_in_range(clock_now_ms() - began, STARTED_MS, HANG_MS);
	program_run_fini(&shell.run);
}

static void what_ignores_term_is_killed(void **state)
{
	struct shell_run shell;
	int64_t began = clock_now_ms();

	(void)state;
	shell_init(&shell, "trap '' TERM; echo ready; while :; do sleep 600; done");
	shell.run.deadline_ms = began + STARTED_MS;
	shell_follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_TIMED_OUT);
	assert_int_equal(shell.run.signal, SIGKILL);
	assert_in_range(clock_now_ms() - began, STARTED_MS + 200, HANG_MS);
	program_run_fini(&shell.run);
}

static void a_longer_grace_is_taken_from_before_the_deadline(void **state)
{
	struct shell_run shell;
	int64_t began = clock_now_ms();

	(void)state;
	shell_init(&shell, "trap 'echo cleaned; exit 5' TERM; echo ready; "
			   "while :; do sleep 0.05; done");
	shell.run.deadline_ms = began + STARTED_MS + 4000;
	shell.run.grace_s = 4;
	shell_follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_TIMED_OUT);
	assert_int_equal(shell.run.exit_code, 5);
	shell_assert_output(&shell.run.out, "ready\ncleaned\n");
	assert_true(clock_now_ms() - began < STARTED_MS + 4000);
	program_run_fini(&shell.run);
}

static void a_stopped_program_is_ended_too(void **state)
{
	struct shell_run shell;
	int64_t began = clock_now_ms();

	(void)state;
	shell_init(&shell, "kill -STOP $$");
	shell.run.deadline_ms = began + 50;
	shell_follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_TIMED_OUT);
	assert_int_equal(shell.run.signal, SIGTERM);
	program_run_fini(&shell.run);
}

static bool always(void *context)
{
	(void)context;
	return true;
}

static bool never(void *context)
{
	++*(int *)context;
	return false;
}

static void a_cancel_ends_it(void **state)
{
	struct shell_run shell;
	int64_t began = clock_now_ms();
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	shell_init(&shell, "sleep 600");
	shell.run.stop_fd = ends[0];
	shell.run.stopped = always;
	shell_follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_CANCELLED);
	assert_true(clock_now_ms() - began < HANG_MS);
	(void)close(ends[0]);
	(void)close(ends[1]);
	program_run_fini(&shell.run);
}

static bool has_spoken(void *context)
{
	const struct program_run *run = context;

	return run->out.total > 0;
}

/* How long it is left alone after TERM, in its own sleeps of 10 ms: load makes them fewer. */
static void a_cancel_leaves_less_time_than_a_deadline(void **state)
{
	struct shell_run shell;
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	shell_init(&shell, "trap '' TERM; while :; do echo; sleep 0.01; done");
	shell.run.stop_fd = ends[0];
	shell.run.stopped = has_spoken;
	shell.run.context = &shell.run;
	shell_follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_CANCELLED);
	assert_int_equal(shell.run.signal, SIGKILL);
	assert_in_range(shell.run.out.total, 1, 1000);
	(void)close(ends[0]);
	(void)close(ends[1]);
	program_run_fini(&shell.run);
}

static void a_stop_descriptor_that_means_nothing_costs_nothing(void **state)
{
	struct shell_run shell;
	int asked = 0;
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	shell_init(&shell, "sleep 0.3; echo done");
	shell.run.stop_fd = ends[0];
	shell.run.stopped = never;
	shell.run.context = &asked;
	shell_follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_ENDED);
	shell_assert_output(&shell.run.out, "done\n");
	/* 15 in 0.3 s, 50 a second; a loop that spins asks thousands of times. */
	assert_in_range(asked, 1, 1500);
	(void)close(ends[0]);
	(void)close(ends[1]);
	program_run_fini(&shell.run);
}

static void silence_ends_it_and_output_keeps_it_alive(void **state)
{
	struct shell_run shell;
	int64_t began = clock_now_ms();

	(void)state;
	/* Longer than the silence all together, each pause far shorter: load may stretch it. */
	shell_init(&shell, "for i in $(seq 25); do echo $i; sleep 0.1; done; sleep 600");
	shell.run.quiet_s = 2;
	shell_follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_QUIET);
	assert_non_null(strstr(shell.run.out.head.data, "24\n25\n"));
	assert_in_range(clock_now_ms() - began, 4000, HANG_MS);
	program_run_fini(&shell.run);
}

struct looker {
	int looks, ready;
	int ends[2];
};

static bool third_look(void *context, int64_t *again_ms)
{
	struct looker *looker = context;

	*again_ms = 20;
	return ++looker->looks == 3;
}

static void looker_ready(void *context)
{
	struct looker *looker = context;
	char byte;

	assert_int_equal(read(looker->ends[0], &byte, 1), 1);
	looker->ready++;
}

static void its_watch_is_asked_and_may_end_it(void **state)
{
	struct looker looker = {0};
	const struct program_watch watch = {.after_ms = 50,
					    .reached = third_look,
					    .fd = -1,
					    .context = &looker};
	struct shell_run shell;
	int64_t began = clock_now_ms();

	(void)state;
	shell_init(&shell, "sleep 60");
	shell.run.watch = &watch;
	shell_follow(&shell.run);
	assert_int_equal(looker.looks, 3);
	assert_int_equal(shell.run.ending, PROGRAM_LIMITED);
	assert_int_equal(shell.run.signal, SIGKILL);
	assert_in_range(clock_now_ms() - began, 90, 30000);
	program_run_fini(&shell.run);
}

static void its_watch_is_told_of_a_descriptor(void **state)
{
	struct looker looker = {0};
	struct program_watch watch = {.ready = looker_ready, .context = &looker};
	struct shell_run shell;

	(void)state;
	assert_int_equal(pipe2(looker.ends, O_CLOEXEC), 0);
	assert_int_equal(write(looker.ends[1], "xyz", 3), 3);
	watch.fd = looker.ends[0];
	shell_init(&shell, "sleep 1");
	shell.run.watch = &watch;
	shell_follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_ENDED);
	assert_int_equal(looker.ready, 3);
	(void)close(looker.ends[0]);
	(void)close(looker.ends[1]);
	program_run_fini(&shell.run);
}

static void keeps_the_first_and_the_last_bytes(void **state)
{
	struct shell_run shell;
	struct buf text;

	(void)state;
	shell_init(&shell, "seq 1 1000000");
	shell_follow(&shell.run);
	assert_int_equal(shell.run.out.total, 6888896);
	buf_init(&text, 1 << 20);
	program_output_text(&shell.run.out, &text);
	assert_int_equal(strncmp(text.data, "1\n2\n3\n", 6), 0);
	assert_non_null(strstr(text.data, "[… 6626752 bytes not kept …]\n"));
	assert_string_equal(text.data + text.size - 15, "999999\n1000000\n");
	assert_true(text.size < PROGRAM_HEAD + PROGRAM_TAIL + 100);
	buf_fini(&text);
	program_run_fini(&shell.run);
}

/* The spill must be what came, the kept parts its beginning and end. */
static void spills_the_beginning_in_order(void **state)
{
	struct shell_run shell;
	auto_close int spill = memfd_create("spill", MFD_CLOEXEC);
	struct buf whole;
	struct err err;

	(void)state;
	shell_init(&shell, "seq 1 3000000");
	shell.run.spill_fd = spill;
	shell_follow(&shell.run);
	assert_int_equal(shell.run.out.total, 22888896);
	assert_int_equal(shell.run.spilled, PROGRAM_SPILL);
	assert_int_equal(shell.run.dropped, 22888896 - PROGRAM_SPILL);
	buf_init(&whole, 32 << 20);
	assert_int_equal(lseek(spill, 0, SEEK_SET), 0);
	assert_true(fd_read_all(spill, &whole, "spill", &err));
	assert_int_equal(whole.size, PROGRAM_SPILL);
	for (size_t at = 0, number = 1; number < 2000000; number++) {
		char line[16];
		int size = snprintf(line, sizeof(line), "%zu\n", number);

		if (memcmp(whole.data + at, line, (size_t)size) != 0)
			fail_msg("line %zu is not in its place", number);
		at += (size_t)size;
	}
	buf_fini(&whole);
	program_run_fini(&shell.run);
}

struct tagged {
	int go; /* what comes next waits for a line here */
	char text[256];
	size_t size;
};

static void take_tagged(void *context, int stream, struct str bytes)
{
	struct tagged *tagged = context;

	tagged->size += (size_t)snprintf(tagged->text + tagged->size,
					 sizeof(tagged->text) - tagged->size, "%d:%.*s",
					 stream, (int)bytes.size, bytes.data);
	assert_int_equal(write(tagged->go, "\n", 1), 1);
}

static void output_comes_tagged_in_the_order_of_arrival(void **state)
{
	struct shell_run shell;
	struct tagged tagged = {.size = 0};
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	tagged.go = ends[1];
	shell_init(&shell, "echo a; read go; echo b >&2; read go; echo c");
	shell.run.start.fds[0] = ends[0];
	shell.run.output = take_tagged;
	shell.run.context = &tagged;
	shell_follow(&shell.run);
	assert_string_equal(tagged.text, "1:a\n2:b\n1:c\n");
	(void)close(ends[0]);
	(void)close(ends[1]);
	program_run_fini(&shell.run);
}

static long peak_kib(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

static void a_flood_of_a_gigabyte_costs_no_memory(void **state)
{
	struct shell_run shell;
	long before = peak_kib();

	(void)state;
	shell_init(&shell, "head -c 1073741824 /dev/zero; head -c 104857600 /dev/zero >&2");
	shell_follow(&shell.run);
	assert_int_equal(shell.run.out.total, 1073741824);
	assert_int_equal(shell.run.error.total, 104857600);
	assert_true(peak_kib() - before < 8 << 10);
	program_run_fini(&shell.run);
}

static void a_flood_does_not_hide_the_deadline(void **state)
{
	struct shell_run shell;
	int64_t began = clock_now_ms();

	(void)state;
	shell_init(&shell, "trap '' TERM; yes & yes >&2 & yes");
	shell.run.deadline_ms = began + 200;
	shell_follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_TIMED_OUT);
	assert_true(clock_now_ms() - began < HANG_MS);
	program_run_fini(&shell.run);
}

static void a_writer_outside_cannot_hold_the_answer(void **state)
{
	struct shell_run shell;
	int names[2];
	pid_t outsider;
	int64_t began;

	(void)state;
	/* The outsider gets the write end through /proc and writes on for ever. */
	assert_int_equal(pipe2(names, O_CLOEXEC), 0);
	outsider = fork();
	if (outsider == 0) {
		char text[32] = {0};
		char path[64];
		char block[4096];
		int fd;

		if (read(names[0], text, sizeof(text) - 1) <= 0)
			_exit(1);
		(void)snprintf(path, sizeof(path), "/proc/%ld/fd/1", strtol(text, NULL, 10));
		fd = open(path, O_WRONLY);
		memset(block, 'x', sizeof(block));
		(void)signal(SIGPIPE, SIG_DFL);
		while (fd >= 0 && write(fd, block, sizeof(block)) > 0)
			;
		_exit(0);
	}
	began = clock_now_ms();
	shell_init(&shell, "echo $$ >&2; sleep 0.3");
	shell.run.start.fds[2] = names[1];
	shell_follow(&shell.run);
	assert_true(clock_now_ms() - began < HANG_MS);
	assert_int_equal(shell.run.ending, PROGRAM_ENDED);
	(void)close(names[0]);
	(void)close(names[1]);
	(void)kill(outsider, SIGKILL);
	assert_int_equal(waitpid(outsider, NULL, 0), outsider);
	program_run_fini(&shell.run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_deadline_ends_it_in_time_with_its_output),
		cmocka_unit_test(what_ignores_term_is_killed),
		cmocka_unit_test(a_longer_grace_is_taken_from_before_the_deadline),
		cmocka_unit_test(a_stopped_program_is_ended_too),
		cmocka_unit_test(a_cancel_ends_it),
		cmocka_unit_test(a_cancel_leaves_less_time_than_a_deadline),
		cmocka_unit_test(a_stop_descriptor_that_means_nothing_costs_nothing),
		cmocka_unit_test(silence_ends_it_and_output_keeps_it_alive),
		cmocka_unit_test(its_watch_is_asked_and_may_end_it),
		cmocka_unit_test(its_watch_is_told_of_a_descriptor),
		cmocka_unit_test(keeps_the_first_and_the_last_bytes),
		cmocka_unit_test(spills_the_beginning_in_order),
		cmocka_unit_test(output_comes_tagged_in_the_order_of_arrival),
		cmocka_unit_test(a_flood_of_a_gigabyte_costs_no_memory),
		cmocka_unit_test(a_flood_does_not_hide_the_deadline),
		cmocka_unit_test(a_writer_outside_cannot_hold_the_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
