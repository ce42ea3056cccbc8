/* library: its sessions hold commands to their limits and leave nothing, whoever ends them. */
#include "world.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t count_lines(const char *path)
{
	FILE *file = fopen(path, "re");
	size_t lines = 0;

	assert_non_null(file);
	for (int c; (c = getc(file)) != EOF;)
		lines += c == '\n';
	(void)fclose(file);
	return lines;
}

static size_t count_names(const char *folder)
{
	DIR *dir = opendir(folder);
	size_t names = 0;

	assert_non_null(dir);
	while (readdir(dir))
		names++;
	(void)closedir(dir);
	return names;
}

/* The process that makes this one's control groups; 0: this machine gives none. */
static int groups_maker(void)
{
	char path[128], name[32] = "";
	FILE *file;
	int found = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	file = fopen(path, "re");
	assert_non_null(file);
	for (int pid; fscanf(file, "%d", &pid) == 1;) {
		FILE *comm;

		(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		comm = fopen(path, "re");
		if (comm && fgets(name, sizeof(name), comm) &&
		    strcmp(name, "glovebox-groups\n") == 0)
			found = pid;
		if (comm)
			(void)fclose(comm);
	}
	(void)fclose(file);
	return found;
}

/* The groups of the process FRONT, in every hierarchy some levels deep: those of its workers are in them. */
static size_t count_groups(int front)
{
	static const char *const levels[] = {"", "*/", "*/*/", "*/*/*/", "*/*/*/*/"};
	size_t count = 0;

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		char pattern[128];
		glob_t found;

		(void)snprintf(pattern, sizeof(pattern), "/sys/fs/cgroup/%sglovebox-%d-*",
			       levels[i], front);
		if (glob(pattern, 0, NULL, &found) == 0) {
			count += found.gl_pathc;
			globfree(&found);
		}
	}
	return count;
}

static void call_done(struct world *world, const char *arguments, const char *expected)
{
	struct glovebox_result *result = glovebox_call(world->session, "bash", arguments);

	if (result->status != GLOVEBOX_DONE || !strstr(result->text, expected))
		fail_msg("%s", result->text);
	glovebox_result_free(result);
}

static void a_session_holds_its_commands_to_their_memory(void **state)
{
	struct world *world = *state;

	world_open(world, "{\"limits\": {\"memory\": \"128M\"}}");
	/* A worker just made is watched by itself, one that waited may be in a group. */
	for (int i = 0; i < 4; i++) {
		struct glovebox_result *result =
			glovebox_call(world->session, "bash",
				      "{\"command\": \"python3 -c 'x = bytearray(2 << 30); "
				      "print(1)'; echo code $?; sleep 0.2; exit 3\"}");

		if (!strstr(result->text, "(limits.memory)") ||
		    !strstr(result->details, "\"limits.memory\"") ||
		    strstr(result->text, "1\n"))
			fail_msg("%s\n%s", result->text, result->details);
		glovebox_result_free(result);
	}
	call_done(world, "{\"command\": \"echo fine\"}", "fine");
}

static void a_session_holds_its_commands_to_their_processes(void **state)
{
	struct world *world = *state;

	world_open(world, "{\"limits\": {\"pids\": 32}}");
	for (int i = 0; i < 4; i++) {
		/* It ends by itself where nothing holds it: bash tries again each second. */
		struct glovebox_result *result =
			glovebox_call(world->session, "bash",
				      "{\"command\": \"for i in $(seq 64); do sleep 3 & done; wait; "
				      "exit 3\"}");

		if (!strstr(result->text, "(limits.pids)"))
			fail_msg("%s\n%s", result->text, result->details);
		glovebox_result_free(result);
	}
}

enum { MANY_CALLS = 1000, FIRST_CALLS = 20, FLAT_BYTES = 256 << 10 };

/* The sanitizers keep what is freed for a while: they are asked what is not. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t allocated(void)
{
	return __sanitizer_get_current_allocated_bytes
		       ? __sanitizer_get_current_allocated_bytes()
		       : mallinfo2().uordblks;
}

static void a_thousand_commands_leave_nothing(void **state)
{
	struct world *world = *state;
	size_t mounts = count_lines("/proc/self/mountinfo");
	size_t before_session = count_names("/proc/self/fd");
	int maker;
	size_t descriptors = 0;
	size_t held = 0;

	world_open(world, "{}");
	for (int i = 0; i < MANY_CALLS; i++) {
		if (i == FIRST_CALLS) {
			descriptors = count_names("/proc/self/fd");
			held = allocated();
		}
		call_done(world,
			  "{\"command\": \"sleep 60 & (setsid sleep 60 &) ; echo x\"}",
			  "x\n");
	}
	maker = groups_maker();
	assert_true(maker == 0 || count_groups((int)getpid()) > 0);
	/* Workers ready ahead come and go: a few each. */
	assert_in_range(count_names("/proc/self/fd"), descriptors - 20, descriptors + 20);
	if (allocated() > held + FLAT_BYTES)
		fail_msg("grew by %zu bytes", allocated() - held);
	glovebox_close(world->session);
	world->session = NULL;
	assert_int_equal(count_lines("/proc/self/mountinfo"), mounts);
	assert_int_equal(count_names("/proc/self/fd"), before_session);
	assert_true(maker == 0 || count_groups((int)getpid()) == 0);
	/* No child, not even one that only __WALL sees. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
}

/* A program with a session and a command under way; it is killed. */
static void be_killed(struct world *world, int told)
{
	world_open(world, "{}");
	for (;;) {
		int maker = groups_maker();

		if (write(told, &maker, sizeof(maker)) < 0)
			_exit(1);
		glovebox_result_free(glovebox_call(
			world->session, "bash",
			"{\"command\": \"sleep 60 & (setsid sleep 60 &) ; sleep 0.01\"}"));
	}
}

enum { KILLS = 30, KILL_STEP_MS = 5, GONE_MS = 30000 };

static void a_killed_program_leaves_nothing(void **state)
{
	struct world *world = *state;

	/* What it leaves becomes ours, and must end by itself. */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	for (int i = 0; i < KILLS; i++) {
		int ends[2], waited = 0, maker = 0;
		pid_t pid, gone;

		assert_int_equal(pipe(ends), 0);
		pid = fork();
		if (pid == 0)
			be_killed(world, ends[1]);
		/* Moments of its opening, and of its calls. */
		(void)poll(NULL, 0, i * KILL_STEP_MS);
		assert_int_equal(kill(pid, SIGKILL), 0);
		(void)close(ends[1]);
		while (read(ends[0], &maker, sizeof(maker)) == (ssize_t)sizeof(maker))
			;
		(void)close(ends[0]);
		while ((gone = waitpid(-1, NULL, WNOHANG | __WALL)) >= 0 &&
		       waited < GONE_MS) {
			if (gone == 0)
				waited += 1 + poll(NULL, 0, 1);
		}
		if (gone >= 0)
			fail_msg("processes are left %d ms after the kill", waited);
		assert_true(maker == 0 || count_groups((int)pid) == 0);
	}
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_make, world_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(a_session_holds_its_commands_to_their_memory),
		IN_WORLD(a_session_holds_its_commands_to_their_processes),
		IN_WORLD(a_thousand_commands_leave_nothing),
		IN_WORLD(a_killed_program_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
