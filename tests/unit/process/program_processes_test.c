/* program_processes: what a program leaves, outside a pid namespace and as pid 1 of one. */
#include "init.h"
#include "shell.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void orphans_do_not_outlive_it_nor_hold_the_answer(void **state)
{
	struct shell_run shell;
	int64_t began = clock_now_ms();
	long pid;
	char word[32];

	(void)state;
	/* Forked twice, own session, the pipe still open. */
	shell_init(&shell,
		   "exec 3>&1; pid=$( (setsid sh -c 'echo $$; exec sleep 61 >&3 3>&-' &) );"
		   " echo $pid");
	shell_follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_ENDED);
	assert_int_equal(shell.run.left_processes, 1);
	assert_true(clock_now_ms() - began < 30000); /* not the 61 s */
	pid = strtol(shell.run.out.head.data, NULL, 10);
	assert_true(pid > 1);
	(void)snprintf(word, sizeof(word), "/proc/%ld", pid);
	assert_int_equal(access(word, F_OK), -1);
	program_run_fini(&shell.run);
}

static void other_children_are_left_alone(void **state)
{
	struct shell_run shell;
	pid_t mine = fork();
	int status;

	(void)state;
	if (mine == 0) {
		(void)pause();
		_exit(0);
	}
	shell_init(&shell, "sleep 60 &");
	shell_follow(&shell.run);
	assert_int_equal(shell.run.left_processes, 1);
	assert_int_equal(waitpid(mine, &status, WNOHANG), 0);
	(void)kill(mine, SIGKILL);
	assert_int_equal(waitpid(mine, &status, 0), mine);
	program_run_fini(&shell.run);
}

static void orphans_from_before_anybody_follows_are_its_own(void **state)
{
	struct shell_run shell;
	struct program_run *run = &shell.run;
	siginfo_t ended;
	struct err err;

	(void)state;
	shell_init(&shell, "sleep 60 &");
	assert_true(program_start_ahead(&run->start, &run->ahead, &err));
	assert_int_equal(waitid(P_PID, (id_t)run->ahead.pid, &ended, WEXITED | WNOWAIT), 0);
	shell_follow(run);
	assert_int_equal(run->left_processes, 1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	program_run_fini(run);
}

static void many_short_programs_leave_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) {
		struct shell_run shell;

		shell_init(&shell, "exit 3");
		shell_follow(&shell.run);
		assert_int_equal(shell.run.exit_code, 3);
		program_run_fini(&shell.run);
	}
	auto_close int next = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(next < 20);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* As pid 1 of a pid namespace, as in a worker: the number of what is wrong, 0: nothing. */
static int as_init(void)
{
	struct shell_run shell;
	struct err err = {0};
	int64_t began = clock_now_ms();

	if (getpid() != 1)
		return 1;
	/*
	 * Orphans by the hundred that end by themselves, some that stay, a kill of all.
	 */
	shell_init(&shell,
		   "i=0; while [ $i -lt 200 ]; do (true &); i=$((i+1)); done; "
		   "(setsid sleep 600 &); (trap '' TERM; sleep 600) & sleep 2; echo end; "
		   "exit 9");
	if (!follow_program(&shell.run, &err))
		return 2;
	/* The subshell, its sleep, and the one with its own session. */
	if (shell.run.exit_code != 9 || shell.run.left_processes < 2 ||
	    shell.run.left_processes > 3)
		return 3;
	if (strcmp(shell.run.out.head.data, "end\n") != 0)
		return 4;
	program_run_fini(&shell.run);
	shell_init(&shell, "kill -TERM $$");
	if (!follow_program(&shell.run, &err) || shell.run.signal != SIGTERM)
		return 5;
	program_run_fini(&shell.run);
	shell_init(&shell, "trap '' TERM; (trap '' TERM; setsid sleep 600) & sleep 600");
	shell.run.deadline_ms = clock_now_ms() + 100;
	if (!follow_program(&shell.run, &err) || shell.run.ending != PROGRAM_TIMED_OUT)
		return 6;
	program_run_fini(&shell.run);
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
		return 7;
	return clock_now_ms() - began < 120000 ? 0 : 8;
}

static void as_pid_1_everything_left_is_ended(void **state)
{
	(void)state;
	assert_int_equal(init_status(0, as_init), 0);
}

/* The same with the signalfd of a worker, through several runs, one of them ended by us. */
static int as_init_with_ends(void)
{
	const struct program_terms terms = {.ends_fd = program_ends_open(NULL)};
	struct err err = {0};

	if (terms.ends_fd < 0)
		return 1;
	for (int i = 0; i < 20; i++) {
		struct shell_run shell;
		const bool late = i == 10;

		shell_init(&shell, late ? "sleep 60 & sleep 60"
					: "grep SigBlk /proc/self/status; (true &); exit 4");
		shell.run.start.terms = &terms;
		if (late)
			shell.run.deadline_ms = clock_now_ms() + 50;
		if (!follow_program(&shell.run, &err))
			return 2;
		if (late ? shell.run.ending != PROGRAM_TIMED_OUT : shell.run.exit_code != 4)
			return 3;
		if (!late &&
		    strcmp(shell.run.out.head.data, "SigBlk:\t0000000000000000\n") != 0)
			return 4;
		if (waitpid(-1, NULL, WNOHANG) != -1 || fcntl(terms.ends_fd, F_GETFD) < 0)
			return 5;
		program_run_fini(&shell.run);
	}
	return 0;
}

static void a_worker_listens_for_ends_all_its_life(void **state)
{
	(void)state;
	assert_int_equal(init_status(0, as_init_with_ends), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orphans_do_not_outlive_it_nor_hold_the_answer),
		cmocka_unit_test(other_children_are_left_alone),
		cmocka_unit_test(orphans_from_before_anybody_follows_are_its_own),
		cmocka_unit_test(many_short_programs_leave_nothing),
		cmocka_unit_test(a_worker_listens_for_ends_all_its_life),
		cmocka_unit_test(as_pid_1_everything_left_is_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
