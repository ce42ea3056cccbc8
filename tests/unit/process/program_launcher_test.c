/* program_launcher: a start made ahead is like any other. */
#include "shell.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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
	shell_follow(&shell.run);
	assert_null(launcher);
	(void)snprintf(pid, sizeof(pid), "%s\n4\nown\n", folder);
	assert_int_equal(strncmp(shell.run.out.head.data, pid, strlen(pid)), 0);
	assert_non_null(strstr(shell.run.out.head.data, "SigBlk:\t0000000000000000"));
	shell_assert_output(&shell.run.error, "bytes\n");
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

static void assert_score(int fd, const char *expected)
{
	char text[16] = "";

	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	text[strcspn(text, "\n")] = '\0';
	assert_string_equal(text, expected);
}

/* By a launcher and without: what was made is the first to go, its maker is not. */
static void a_program_goes_before_its_maker_when_memory_runs_out(void **state)
{
	auto_close int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char own[16] = "";
	struct program_score score = {.fd = fd, .own = own};
	const struct program_terms terms = {.score = &score};
	struct program_launcher *launcher;

	(void)state;
	program_plain_signals();
	assert_true(fd >= 0 && read(fd, own, sizeof(own) - 1) > 0);
	own[strcspn(own, "\n")] = '\0';
	assert_int_equal(pwrite(fd, "1000", 4, 0), 4);
	launcher = program_launcher_make(&terms);
	for (int i = 0; i < 3; i++) {
		struct shell_run shell;

		shell_init(&shell, "sleep 0; cat /proc/self/oom_score_adj");
		shell.run.start.terms = &terms;
		shell.run.start.launcher = i == 0 ? &launcher : NULL;
		if (i == 0)
			assert_score(fd, "1000");
		shell_follow(&shell.run);
		shell_assert_output(&shell.run.out, "1000\n");
		assert_score(fd, own);
		program_run_fini(&shell.run);
	}
	launcher = program_launcher_make(&terms);
	assert_score(fd, "1000");
	program_launcher_end(&launcher);
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

static void what_a_launcher_cannot_start_is_said(void **state)
{
	struct program_launcher *launcher = program_launcher_make(&no_terms);
	const struct program_start start = {
		.argv = (const char *const[]){"/no/such", NULL},
		.environment = shell_environment,
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
	shell_follow(&shell.run);
	struct buf without = shell.run.out.head;
	buf_init(&shell.run.out.head, PROGRAM_HEAD);
	program_run_fini(&shell.run);
	launcher = program_launcher_make(&no_terms);
	shell_init(&shell, "grep Seccomp_filters: /proc/self/status");
	shell.run.start.terms = &terms;
	shell.run.start.launcher = &launcher;
	shell_follow(&shell.run);
	assert_null(launcher);
	assert_string_not_equal(shell.run.out.head.data, without.data);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	buf_fini(&without);
	program_run_fini(&shell.run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_made_ahead_is_like_any_other),
		cmocka_unit_test(a_launcher_that_was_roused_waits_on),
		cmocka_unit_test(a_launcher_that_has_died_is_done_without),
		cmocka_unit_test(a_program_goes_before_its_maker_when_memory_runs_out),
		cmocka_unit_test(a_maker_waits_for_a_sign_of_what_it_made),
		cmocka_unit_test(what_a_launcher_cannot_start_is_said),
		cmocka_unit_test(a_launcher_of_another_kind_is_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
