/* program: start errors, descriptors, and what a plain run tells. */
#include "shell.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void gathers_both_streams_and_the_exit_code(void **state)
{
	struct shell_run shell;

	(void)state;
	shell_init(&shell, "echo out; echo err >&2; echo $WORD; exit 7");
	shell_follow(&shell.run);
	shell_assert_output(&shell.run.out, "out\nyes\n");
	shell_assert_output(&shell.run.error, "err\n");
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
	shell_follow(&shell.run);
	assert_int_equal(shell.run.exit_code, -1);
	assert_int_equal(shell.run.signal, SIGABRT);
	program_run_fini(&shell.run);
}

static void assert_start_fails(const char *const *argv, const char *folder, int code)
{
	struct program_start start = {.argv = argv,
				      .environment = shell_environment,
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
	shell_follow(&shell.run);
	char expected[64];

	(void)snprintf(expected, sizeof(expected), "0\n1\n2\n%d\n/dev/null\n", kept);
	shell_assert_output(&shell.run.out, expected);
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
	shell_follow(&shell.run);
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
	shell_follow(&shell.run);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	(void)signal(SIGPIPE, handler);
	shell_assert_output(&shell.run.out,
			    "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
	program_run_fini(&shell.run);
}

static void assert_score(int fd, const char *expected)
{
	char text[16] = "";

	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	text[strcspn(text, "\n")] = '\0';
	assert_string_equal(text, expected);
}

/* The program is the first to go, its maker is not. */
static void a_program_goes_before_its_maker_when_memory_runs_out(void **state)
{
	auto_close int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char own[16] = "";
	struct program_score score = {.fd = fd, .own = own};
	const struct program_terms terms = {.score = &score};

	(void)state;
	program_plain_signals();
	assert_true(fd >= 0 && read(fd, own, sizeof(own) - 1) > 0);
	own[strcspn(own, "\n")] = '\0';
	assert_int_equal(pwrite(fd, "1000", 4, 0), 4);
	for (int i = 0; i < 3; i++) {
		struct shell_run shell;

		shell_init(&shell, "sleep 0; cat /proc/self/oom_score_adj");
		shell.run.start.terms = &terms;
		shell_follow(&shell.run);
		shell_assert_output(&shell.run.out, "1000\n");
		assert_score(fd, own);
		program_run_fini(&shell.run);
	}
	assert_int_equal(pwrite(fd, own, strlen(own), 0), (ssize_t)strlen(own));
}

struct silence {
	int score_fd, input_fd;
	int64_t began_ms;
};

/* It has said nothing yet; now it may. */
static bool end_silence(void *context, int64_t *again_ms)
{
	struct silence *silence = context;

	*again_ms = 60000;
	if (silence->input_fd >= 0 && clock_now_ms() - silence->began_ms < 100)
		assert_score(silence->score_fd, "1000");
	fd_close(&silence->input_fd);
	return false;
}

/* Lowered while its memory is ours, it would be worth as much as its maker. */
static void a_maker_waits_for_a_sign_of_what_it_made(void **state)
{
	auto_close int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char own[16] = "";
	int ends[2];
	struct err err;

	(void)state;
	assert_true(fd >= 0 && read(fd, own, sizeof(own) - 1) > 0);
	own[strcspn(own, "\n")] = '\0';
	assert_true(fd_pipe(ends, &err));
	struct program_score score = {.fd = fd, .own = own};
	const struct program_terms terms = {.score = &score};
	struct silence silence = {fd, ends[1], clock_now_ms()};
	const struct program_watch watch = {.after_ms = 1,
					    .reached = end_silence,
					    .fd = -1,
					    .context = &silence};
	struct shell_run shell;

	shell_init(&shell, "read word; cat /proc/self/oom_score_adj");
	shell.run.start.fds[0] = ends[0];
	shell.run.start.terms = &terms;
	shell.run.watch = &watch;
	assert_int_equal(pwrite(fd, "1000", 4, 0), 4);
	shell_follow(&shell.run);
	shell_assert_output(&shell.run.out, "1000\n");
	assert_score(fd, own);
	(void)close(ends[0]);
	program_run_fini(&shell.run);
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
		cmocka_unit_test(a_program_goes_before_its_maker_when_memory_runs_out),
		cmocka_unit_test(a_maker_waits_for_a_sign_of_what_it_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
