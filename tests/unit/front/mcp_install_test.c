/* mcp_install: a client's command that does not end is ended. */
#include "../base/unit.h"

#include "front/verb.h"
#include "front/wrap/mcp_install.h"

#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, SOON_MS = 20000 };

static char folder[PATH_BYTES];

static int make_folder(void **state)
{
	const char *temporary = getenv("TMPDIR");

	(void)state;
	(void)snprintf(folder, sizeof(folder), "%.4000s/mcp_install_test.XXXXXX",
		       temporary ? temporary : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = {"claude", "pids"};
	char path[PATH_BYTES + 16];

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		(void)remove(path);
	}
	return rmdir(folder);
}

/* A client that ignores TERM, as does the process that it starts; it notes both. */
static void write_client(void)
{
	static const char text[] = "#!/bin/sh\n"
				   "trap '' TERM\n"
				   "/bin/sleep 1000 &\n"
				   "echo $$ $! >\"${0%/*}/pids\"\n"
				   "wait\n";
	char path[PATH_BYTES + 16];
	struct err err;

	(void)snprintf(path, sizeof(path), "%s/claude", folder);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

	assert_true(fd >= 0);
	assert_true(fd_write_all(fd, text, strlen(text), &err));
}

static void read_pids(int pids[2])
{
	char path[PATH_BYTES + 16];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/pids", folder);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d %d", &pids[0], &pids[1]), 2);
	(void)fclose(file);
}

static void a_command_that_hangs_is_ended_with_all_that_it_started(void **state)
{
	static const char *const arguments[] = {"mcp", NULL};
	/* The limit must leave the shell the time to note its processes. */
	const struct mcp_install install = {.client = "claude",
					    .arguments = arguments,
					    .limit_s = 3};
	const int64_t began = clock_now_ms();
	int pids[2];

	(void)state;
	write_client();
	assert_int_equal(setenv("PATH", folder, 1), 0);
	assert_int_equal(setenv("HOME", folder, 1), 0);
	assert_int_equal(mcp_install(&install, stdout), CODE_TIMED_OUT);
	assert_in_range(clock_now_ms() - began, 3000, SOON_MS);
	read_pids(pids);
	for (size_t i = 0; i < UNIT_COUNT(pids); i++)
		assert_int_equal(kill(pids[i], 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_command_that_hangs_is_ended_with_all_that_it_started,
			make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
