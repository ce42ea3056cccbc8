/*
 * program: start errors, descriptors, ends of all kinds, floods; outside a pid namespace
 * and as pid 1 of one.
 */
/* clang-format off: cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
/* clang-format on */

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "process/program.h"

#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "WORD=yes",
					  NULL};

struct shell_run {
	struct program_run run;
	const char *argv[4];
};

static void shell_init(struct shell_run *shell, const char *text)
{
	program_run_init(&shell->run);
	shell->argv[0] = "sh";
	shell->argv[1] = "-c";
	shell->argv[2] = text;
	shell->argv[3] = NULL;
	shell->run.start.argv = shell->argv;
	shell->run.start.environment = environment;
}

static void follow(struct program_run *run)
{
	struct err err = {0};

	if (!program_follow(run, &err))
		fail_msg("%s", err.text);
}

static void assert_output(const struct program_output *output, const char *expected)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	program_output_text(output, &text);
	assert_string_equal(text.data, expected);
	buf_fini(&text);
}

static void gathers_both_streams_and_the_exit_code(void **state)
{
	struct shell_run shell;

	(void)state;
	shell_init(&shell, "echo out; echo err >&2; echo $WORD; exit 7");
	follow(&shell.run);
	assert_output(&shell.run.out, "out\nyes\n");
	assert_output(&shell.run.error, "err\n");
	assert_int_equal(shell.run.exit_code, 7);
	assert_int_equal(shell.run.signal, 0);
	assert_int_equal(shell.run.ending, PROGRAM_ENDED);
	assert_int_equal(shell.run.left_processes, 0);
	program_run_fini(&shell.run);
}

static void tells_the_signal_that_ended_it(void **state)
{
	struct shell_run shell;

	(void)state;
	shell_init(&shell, "kill -ABRT $$");
	follow(&shell.run);
	assert_int_equal(shell.run.exit_code, -1);
	assert_int_equal(shell.run.signal, SIGABRT);
	program_run_fini(&shell.run);
}

static void assert_start_fails(const char *const *argv, const char *folder, int code)
{
	struct program_start start = {.argv = argv,
				      .environment = environment,
				      .folder = folder,
				      .fds = {-1, -1, -1}};
	struct err err = {0};
	pid_t pid = 0;

	assert_false(program_start(&start, &pid, &err));
	if (err.code != code)
		fail_msg("%d instead of %d: %s", err.code, code, err.text);
	assert_true(strlen(err.text) > 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void says_why_a_program_does_not_start(void **state)
{
	const char *const missing[] = {"no-such-program", NULL};
	const char *const missing_path[] = {"/nowhere/at/all", NULL};
	const char *const closed[] = {"/etc/passwd", NULL};
	const char *const empty[] = {"", NULL};
	const char *const folder[] = {"/etc", NULL};
	const char *const fine[] = {"true", NULL};
	char name[] = "/tmp/glovebox-unit-XXXXXX";
	const char *const text[] = {name, NULL};
	auto_close int fd = mkstemp(name);

	(void)state;
	assert_start_fails(missing, NULL, ENOENT);
	assert_start_fails(missing_path, NULL, ENOENT);
	assert_start_fails(closed, NULL, EACCES);
	assert_start_fails(empty, NULL, ENOENT);
	assert_start_fails(folder, NULL, EACCES);
	assert_start_fails(fine, "/nowhere", ENOTDIR);
	assert_int_equal(write(fd, "plain text\n", 11), 11);
	assert_int_equal(fchmod(fd, 0755), 0);
	fd_close(&fd);
	assert_start_fails(text, NULL, ENOEXEC);
	fd = open(name, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, "#!/nowhere/sh\n", 14), 14);
	fd_close(&fd);
	assert_start_fails(text, NULL, ENOENT);
	(void)unlink(name);
}

static void arguments_that_are_too_long_are_said_to_be(void **state)
{
	auto_free char *huge = memory_alloc(4 << 20);
	const char *const argv[] = {"true", huge, NULL};

	(void)state;
	memset(huge, 'a', (4 << 20) - 1);
	assert_start_fails(argv, NULL, E2BIG);
}

static void starts_with_its_three_descriptors_and_those_named(void **state)
{
	struct shell_run shell;
	auto_close int kept = open("/dev/null", O_RDONLY | O_CLOEXEC);
	auto_close int leaked = open("/dev/null", O_RDONLY);
	const int more[] = {kept, -1};

	(void)state;
	assert_true(leaked > 2);
	shell_init(&shell, "for f in /proc/self/fd/*; do n=${f##*/}; [ -e /proc/$$/fd/$n ] && "
			   "echo $n; done; readlink /proc/$$/fd/0");
	shell.run.start.more_fds = more;
	follow(&shell.run);
	char expected[64];

	(void)snprintf(expected, sizeof(expected), "0\n1\n2\n%d\n/dev/null\n", kept);
	assert_output(&shell.run.out, expected);
	program_run_fini(&shell.run);
}

static void descriptors_may_change_places(void **state)
{
	struct shell_run shell;
	int ends[2];
	char got[16] = {0};
	auto_close int saved_out = dup(1);
	auto_close int saved_err = dup(2);

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	shell_init(&shell, "echo one; echo two >&2");
	/* 1 and 2 swapped: where the pipe is 2 here it must become 1 there. */
	assert_true(dup2(ends[1], 2) == 2);
	shell.run.start.fds[1] = 2;
	shell.run.start.fds[2] = 1;
	auto_close int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	assert_true(dup2(null, 1) == 1);
	follow(&shell.run);
	(void)dup2(saved_out, 1);
	(void)dup2(saved_err, 2);
	assert_int_equal(read(ends[0], got, sizeof(got) - 1), 4);
	assert_string_equal(got, "one\n");
	(void)close(ends[0]);
	(void)close(ends[1]);
	program_run_fini(&shell.run);
}

static void signals_start_as_usual(void **state)
{
	struct shell_run shell;
	sigset_t all, before;
	void (*handler)(int) = signal(SIGPIPE, SIG_IGN);

	(void)state;
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	shell_init(&shell, "grep -E '^Sig(Blk|Ign):' /proc/self/status");
	follow(&shell.run);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	(void)signal(SIGPIPE, handler);
	assert_output(&shell.run.out,
		      "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
	program_run_fini(&shell.run);
}

static void a_deadline_ends_it_in_time_with_its_output(void **state)
{
	struct shell_run shell;
	int64_t began = clock_now_ms();

	(void)state;
	shell_init(&shell, "echo before; sleep 60");
	shell.run.deadline_ms = began + 100;
	follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_TIMED_OUT);
	assert_output(&shell.run.out, "before\n");
	assert_in_range(clock_now_ms() - began, 100, 600);
	program_run_fini(&shell.run);
}

static void what_ignores_term_is_killed(void **state)
{
	struct shell_run shell;
	int64_t began = clock_now_ms();

	(void)state;
	shell_init(&shell, "trap '' TERM; echo ready; while :; do sleep 60; done");
	shell.run.deadline_ms = began + 100;
	follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_TIMED_OUT);
	assert_int_equal(shell.run.signal, SIGKILL);
	assert_in_range(clock_now_ms() - began, 300, 600);
	program_run_fini(&shell.run);
}

static void a_longer_grace_is_taken_from_before_the_deadline(void **state)
{
	struct shell_run shell;
	int64_t began = clock_now_ms();

	(void)state;
	shell_init(&shell, "trap 'echo cleaned; exit 5' TERM; echo ready; "
			   "while :; do sleep 0.05; done");
	shell.run.deadline_ms = began + 1000;
	shell.run.grace_s = 0.7;
	follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_TIMED_OUT);
	assert_int_equal(shell.run.exit_code, 5);
	assert_output(&shell.run.out, "ready\ncleaned\n");
	assert_true(clock_now_ms() - began < 1000);
	program_run_fini(&shell.run);
}

static void a_stopped_program_is_ended_too(void **state)
{
	struct shell_run shell;
	int64_t began = clock_now_ms();

	(void)state;
	shell_init(&shell, "kill -STOP $$");
	shell.run.deadline_ms = began + 50;
	follow(&shell.run);
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
	shell_init(&shell, "sleep 60");
	shell.run.stop_fd = ends[0];
	shell.run.stopped = always;
	follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_CANCELLED);
	assert_true(clock_now_ms() - began < 500);
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
	follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_ENDED);
	assert_output(&shell.run.out, "done\n");
	/* 15 in 0.3 s; a loop that spins asks thousands of times. */
	assert_in_range(asked, 1, 200);
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
	shell_init(&shell,
		   "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.1; done; sleep 60");
	shell.run.quiet_s = 0.8;
	follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_QUIET);
	assert_output(&shell.run.out, "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
	assert_in_range(clock_now_ms() - began, 1600, 30000);
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
	follow(&shell.run);
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
	shell_init(&shell, "sleep 0.1");
	shell.run.watch = &watch;
	follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_ENDED);
	assert_int_equal(looker.ready, 3);
	(void)close(looker.ends[0]);
	(void)close(looker.ends[1]);
	program_run_fini(&shell.run);
}

static const struct program_terms no_terms = {0};

/* The same program whether its start was made ahead or not, and nothing left of either. */
static void assert_launched(struct program_launcher *launcher, const char *folder)
{
	auto_close int given = memfd_create("given", MFD_CLOEXEC);
	struct shell_run shell;
	char pid[32] = "";

	/* Opened after the launcher: its own table must hold no more than it is given. */
	shell_init(&shell,
		   "pwd; ls /proc/self/fd | wc -l; [ $(ps -o pgid= $$) = $$ ] && echo own; "
		   "grep SigBlk /proc/self/status; exec sh -c 'echo bytes >&2; exit 5'");
	shell.run.start.folder = folder;
	shell.run.start.fds[0] = given;
	shell.run.start.terms = &no_terms;
	shell.run.start.launcher = &launcher;
	follow(&shell.run);
	assert_null(launcher);
	(void)snprintf(pid, sizeof(pid), "%s\n4\nown\n", folder);
	assert_int_equal(strncmp(shell.run.out.head.data, pid, strlen(pid)), 0);
	assert_non_null(strstr(shell.run.out.head.data, "SigBlk:\t0000000000000000"));
	assert_output(&shell.run.error, "bytes\n");
	assert_int_equal(shell.run.exit_code, 5);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	program_run_fini(&shell.run);
}

static void a_start_made_ahead_is_like_any_other(void **state)
{
	(void)state;
	program_plain_signals();
	assert_launched(program_launcher_make(&no_terms), "/usr");
	assert_launched(NULL, "/usr");
}

/* At once; when it has gone back to sleep; and when no start follows at all. */
static void a_launcher_that_was_roused_waits_on(void **state)
{
	struct program_launcher *launcher = program_launcher_make(&no_terms);

	(void)state;
	assert_non_null(launcher);
	program_launcher_rouse(launcher);
	assert_launched(launcher, "/usr");
	launcher = program_launcher_make(&no_terms);
	assert_non_null(launcher);
	program_launcher_rouse(launcher);
	(void)poll(NULL, 0, 20);
	assert_launched(launcher, "/tmp");
	launcher = program_launcher_make(&no_terms);
	program_launcher_rouse(launcher);
	program_launcher_end(&launcher);
	assert_null(launcher);
	program_launcher_rouse(NULL);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static pid_t first_child(void)
{
	char text[32] = "";
	auto_close int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);

	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	return (pid_t)strtol(text, NULL, 10);
}

static void a_launcher_that_has_died_is_done_without(void **state)
{
	struct program_launcher *launcher = program_launcher_make(&no_terms);

	(void)state;
	assert_non_null(launcher);
	siginfo_t info;
	assert_int_equal(kill(first_child(), SIGKILL), 0);
	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
	assert_launched(launcher, "/tmp");
}

static void what_a_launcher_cannot_start_is_said(void **state)
{
	struct program_launcher *launcher = program_launcher_make(&no_terms);
	const struct program_start start = {
		.argv = (const char *const[]){"/no/such", NULL},
		.environment = environment,
		.fds = {-1, -1, -1},
		.terms = &no_terms,
		.launcher = &launcher,
	};
	struct err err = {0};
	pid_t pid;

	(void)state;
	assert_non_null(launcher);
	assert_false(program_start(&start, &pid, &err));
	assert_int_equal(err.code, ENOENT);
	assert_string_equal(err.text, "/no/such: command not found.");
	assert_null(launcher);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	launcher = program_launcher_make(&no_terms);
	program_launcher_end(&launcher);
	program_launcher_end(&launcher);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* What was made for programs without a filter starts none that has one. */
static void a_launcher_of_another_kind_is_ended(void **state)
{
	static struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	static const struct sock_fprog filter = {.len = 1, .filter = all};
	static const struct program_terms terms = {.filter = &filter};
	struct program_launcher *launcher = program_launcher_make(&no_terms);
	struct shell_run shell;

	(void)state;
	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	shell_init(&shell, "grep Seccomp_filters: /proc/self/status");
	shell.run.start.terms = &no_terms;
	shell.run.start.launcher = &launcher;
	follow(&shell.run);
	struct buf without = shell.run.out.head;
	buf_init(&shell.run.out.head, PROGRAM_HEAD);
	program_run_fini(&shell.run);
	launcher = program_launcher_make(&no_terms);
	shell_init(&shell, "grep Seccomp_filters: /proc/self/status");
	shell.run.start.terms = &terms;
	shell.run.start.launcher = &launcher;
	follow(&shell.run);
	assert_null(launcher);
	assert_string_not_equal(shell.run.out.head.data, without.data);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	buf_fini(&without);
	program_run_fini(&shell.run);
}

static void orphans_do_not_outlive_it_nor_hold_the_answer(void **state)
{
	struct shell_run shell;
	int64_t began = clock_now_ms();
	long pid;
	char word[32];

	(void)state;
	/* Forked twice, own session, the pipe still open. */
	shell_init(&shell,
		   "(setsid sh -c 'echo $$; exec sleep 61' & ) ; sleep 0.2; echo end");
	follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_ENDED);
	assert_int_equal(shell.run.left_processes, 1);
	assert_true(clock_now_ms() - began < 1500);
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
	follow(&shell.run);
	assert_int_equal(shell.run.left_processes, 1);
	assert_int_equal(waitpid(mine, &status, WNOHANG), 0);
	(void)kill(mine, SIGKILL);
	assert_int_equal(waitpid(mine, &status, 0), mine);
	program_run_fini(&shell.run);
}

static void keeps_the_first_and_the_last_bytes(void **state)
{
	struct shell_run shell;
	struct buf text;

	(void)state;
	shell_init(&shell, "seq 1 1000000");
	follow(&shell.run);
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
	follow(&shell.run);
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
	char text[256];
	size_t size;
};

static void take_tagged(void *context, int stream, struct str bytes)
{
	struct tagged *tagged = context;

	tagged->size += (size_t)snprintf(tagged->text + tagged->size,
					 sizeof(tagged->text) - tagged->size, "%d:%.*s",
					 stream, (int)bytes.size, bytes.data);
}

static void output_comes_tagged_in_the_order_of_arrival(void **state)
{
	struct shell_run shell;
	struct tagged tagged = {.size = 0};

	(void)state;
	shell_init(&shell, "echo a; sleep 0.1; echo b >&2; sleep 0.1; echo c");
	shell.run.output = take_tagged;
	shell.run.context = &tagged;
	follow(&shell.run);
	assert_string_equal(tagged.text, "1:a\n2:b\n1:c\n");
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
	follow(&shell.run);
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
	follow(&shell.run);
	assert_int_equal(shell.run.ending, PROGRAM_TIMED_OUT);
	assert_true(clock_now_ms() - began < 700);
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
	follow(&shell.run);
	assert_true(clock_now_ms() - began < 2000);
	assert_int_equal(shell.run.ending, PROGRAM_ENDED);
	(void)close(names[0]);
	(void)close(names[1]);
	(void)kill(outsider, SIGKILL);
	assert_int_equal(waitpid(outsider, NULL, 0), outsider);
	program_run_fini(&shell.run);
}

static void many_short_programs_leave_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) {
		struct shell_run shell;

		shell_init(&shell, "exit 3");
		follow(&shell.run);
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
		   "(setsid sleep 60 &); (trap '' TERM; sleep 60) & sleep 0.1; echo end; "
		   "exit 9");
	if (!program_follow(&shell.run, &err))
		return 2;
	/* The subshell, its sleep, and the one with its own session. */
	if (shell.run.exit_code != 9 || shell.run.left_processes < 2 ||
	    shell.run.left_processes > 3)
		return 3;
	if (strcmp(shell.run.out.head.data, "end\n") != 0)
		return 4;
	program_run_fini(&shell.run);
	shell_init(&shell, "kill -TERM $$");
	if (!program_follow(&shell.run, &err) || shell.run.signal != SIGTERM)
		return 5;
	program_run_fini(&shell.run);
	shell_init(&shell, "trap '' TERM; (trap '' TERM; setsid sleep 60) & sleep 60");
	shell.run.deadline_ms = clock_now_ms() + 100;
	if (!program_follow(&shell.run, &err) || shell.run.ending != PROGRAM_TIMED_OUT)
		return 6;
	program_run_fini(&shell.run);
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
		return 7;
	return clock_now_ms() - began < 20000 ? 0 : 8;
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
		if (!program_follow(&shell.run, &err))
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
		cmocka_unit_test(gathers_both_streams_and_the_exit_code),
		cmocka_unit_test(tells_the_signal_that_ended_it),
		cmocka_unit_test(says_why_a_program_does_not_start),
		cmocka_unit_test(arguments_that_are_too_long_are_said_to_be),
		cmocka_unit_test(starts_with_its_three_descriptors_and_those_named),
		cmocka_unit_test(descriptors_may_change_places),
		cmocka_unit_test(signals_start_as_usual),
		cmocka_unit_test(a_deadline_ends_it_in_time_with_its_output),
		cmocka_unit_test(what_ignores_term_is_killed),
		cmocka_unit_test(a_longer_grace_is_taken_from_before_the_deadline),
		cmocka_unit_test(a_stopped_program_is_ended_too),
		cmocka_unit_test(a_cancel_ends_it),
		cmocka_unit_test(a_stop_descriptor_that_means_nothing_costs_nothing),
		cmocka_unit_test(silence_ends_it_and_output_keeps_it_alive),
		cmocka_unit_test(its_watch_is_asked_and_may_end_it),
		cmocka_unit_test(its_watch_is_told_of_a_descriptor),
		cmocka_unit_test(orphans_do_not_outlive_it_nor_hold_the_answer),
		cmocka_unit_test(other_children_are_left_alone),
		cmocka_unit_test(keeps_the_first_and_the_last_bytes),
		cmocka_unit_test(spills_the_beginning_in_order),
		cmocka_unit_test(output_comes_tagged_in_the_order_of_arrival),
		cmocka_unit_test(a_flood_of_a_gigabyte_costs_no_memory),
		cmocka_unit_test(a_flood_does_not_hide_the_deadline),
		cmocka_unit_test(a_writer_outside_cannot_hold_the_answer),
		cmocka_unit_test(many_short_programs_leave_nothing),
		cmocka_unit_test(a_worker_listens_for_ends_all_its_life),
		cmocka_unit_test(as_pid_1_everything_left_is_ended),
		cmocka_unit_test(a_start_made_ahead_is_like_any_other),
		cmocka_unit_test(a_launcher_that_was_roused_waits_on),
		cmocka_unit_test(a_launcher_that_has_died_is_done_without),
		cmocka_unit_test(what_a_launcher_cannot_start_is_said),
		cmocka_unit_test(a_launcher_of_another_kind_is_ended),
	};

	return cmocka_run_group_tests_name("process-program", tests, NULL, NULL);
}
