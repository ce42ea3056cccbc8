/* library: what include/glovebox.h promises, seen from a program that uses it. */
#include "glovebox.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A folder, the session on it, and what its calls put out. */
struct world {
	char folder[64];
	char error[GLOVEBOX_ERROR_MAX];
	char output[256];
	int begun[2]; /* a pipe: a byte for each fragment */
	struct glovebox_session *session;
};

static void on_output(void *context, const char *tool, int stream, const char *bytes,
		      size_t size)
{
	struct world *world = context;
	size_t used = strlen(world->output);

	(void)!write(world->begun[1], "", 1);
	(void)snprintf(world->output + used, sizeof(world->output) - used, "%s%d:%.*s",
		       tool, stream, (int)size, bytes);
}

static struct glovebox_options options_for(struct world *world)
{
	struct glovebox_options options = GLOVEBOX_OPTIONS;

	options.workspace = world->folder;
	options.program = getenv("GLOVEBOX");
	options.output = on_output;
	options.context = world;
	return options;
}

static int world_make(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	if (world == NULL)
		return -1;
	(void)snprintf(world->folder, sizeof(world->folder), "/tmp/glovebox-library-XXXXXX");
	*state = world;
	return mkdtemp(world->folder) == NULL || pipe(world->begun) < 0 ? -1 : 0;
}

static int world_end(void **state)
{
	struct world *world = *state;

	glovebox_close(world->session);
	(void)rmdir(world->folder);
	(void)close(world->begun[0]);
	(void)close(world->begun[1]);
	free(world);
	return 0;
}

static void world_open(struct world *world, const char *policy)
{
	struct glovebox_options options = options_for(world);

	options.policy = policy;
	world->session = glovebox_open(&options, world->error, sizeof(world->error));
	if (world->session == NULL)
		fail_msg("%s", world->error);
}

static void options_of_another_size_are_refused(void **state)
{
	struct world *world = *state;
	struct glovebox_options options = options_for(world);

	options.size = 0;
	assert_null(glovebox_open(&options, world->error, sizeof(world->error)));
	assert_non_null(strstr(world->error, "GLOVEBOX_OPTIONS"));
	options.size = sizeof(options) + sizeof(void *);
	assert_null(glovebox_open(&options, world->error, sizeof(world->error)));
	assert_non_null(strstr(world->error, "newer library"));
	assert_null(glovebox_open(NULL, NULL, 0));
}

static void options_of_an_older_program_are_enough(void **state)
{
	struct world *world = *state;
	struct glovebox_options options = options_for(world);

	options.size = offsetof(struct glovebox_options, output);
	world->session = glovebox_open(&options, world->error, sizeof(world->error));
	assert_non_null(world->session);
	glovebox_result_free(
		glovebox_call(world->session, "bash", "{\"command\": \"echo x\"}"));
	assert_string_equal(world->output, "");
}

static void an_error_is_cut_to_its_room(void **state)
{
	struct world *world = *state;
	struct glovebox_options options = options_for(world);
	char small[8] = "unread!";

	options.workspace = "/nowhere/at/all";
	assert_null(glovebox_open(&options, small, sizeof(small)));
	assert_int_equal(strlen(small), sizeof(small) - 1);
}

static void a_policy_with_a_slip_is_refused(void **state)
{
	struct world *world = *state;
	struct glovebox_options options = options_for(world);

	options.policy = "{\"wirte\": []}";
	assert_null(glovebox_open(&options, world->error, sizeof(world->error)));
	assert_non_null(strstr(world->error, "write"));
	options.policy = "{";
	assert_null(glovebox_open(&options, world->error, sizeof(world->error)));
	assert_non_null(strstr(world->error, "line 1"));
}

static void tools_come_with_their_schema(void **state)
{
	struct world *world = *state;
	const struct glovebox_tool *tool = NULL;
	size_t count = 0;

	world_open(world, "{\"tools\": [\"bash\", \"read_file\"]}");
	while (glovebox_tool(world->session, count) != NULL)
		count++;
	assert_int_equal(count, 2);
	tool = glovebox_tool(world->session, 0);
	assert_string_equal(tool->name, "bash");
	assert_true(tool->runs);
	assert_non_null(strstr(tool->schema, "\"command\""));
	assert_false(glovebox_tool(world->session, 1)->runs);
	assert_string_equal(glovebox_workspace(world->session), world->folder);
	assert_in_range(glovebox_level(world->session), 1, 3);
}

static void a_call_is_answered(void **state)
{
	struct world *world = *state;
	struct glovebox_result *result;

	world_open(world, NULL);
	result = glovebox_call(world->session, "bash",
			       "{\"command\": \"echo hello; exit 3\"}");
	assert_int_equal(result->status, GLOVEBOX_DONE);
	assert_int_equal(result->exit_code, 3);
	assert_int_equal(strlen(result->text), result->text_size);
	assert_non_null(strstr(result->text, "hello"));
	assert_int_equal(result->details[0], '{');
	assert_true(result->seconds > 0);
	assert_int_equal(result->level, glovebox_level(world->session));
	assert_non_null(strstr(world->output, "bash1:hello"));
	glovebox_result_free(result);
}

static void nothing_is_written_unless_the_policy_says_so(void **state)
{
	struct world *world = *state;
	struct glovebox_result *result;

	world_open(world, NULL);
	result = glovebox_call(world->session, "write_file",
			       "{\"path\": \"a\", \"content\": \"x\"}");
	assert_int_equal(result->status, GLOVEBOX_DENIED);
	assert_string_equal(glovebox_status_name(result->status), "denied");
	glovebox_result_free(result);
}

static void what_is_wrong_is_an_answer(void **state)
{
	static const char *const arguments[] = {NULL, "", "{", "[]", "{\"comand\": \"x\"}"};
	struct world *world = *state;

	world_open(world, NULL);
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		struct glovebox_result *result =
			glovebox_call(world->session, "bash", arguments[i]);

		assert_int_equal(result->status, GLOVEBOX_FAILED);
		assert_true(result->text_size > 0);
		glovebox_result_free(result);
	}
	glovebox_result_free(glovebox_call(world->session, NULL, NULL));
	glovebox_result_free(NULL);
}

static void *cancel_it(void *context)
{
	struct world *world = context;
	char byte;

	if (read(world->begun[0], &byte, 1) == 1)
		glovebox_cancel(world->session);
	return NULL;
}

static void a_cancel_ends_the_call_under_way(void **state)
{
	struct world *world = *state;
	struct glovebox_result *result;
	pthread_t thread;

	world_open(world, NULL);
	assert_int_equal(pthread_create(&thread, NULL, cancel_it, world), 0);
	result = glovebox_call(world->session, "bash",
			       "{\"command\": \"echo begun; sleep 60\"}");
	(void)pthread_join(thread, NULL);
	assert_int_equal(result->status, GLOVEBOX_CANCELLED);
	assert_true(result->seconds < 30);
	glovebox_result_free(result);
	result = glovebox_call(world->session, "bash", "{\"command\": \"echo again\"}");
	assert_int_equal(result->status, GLOVEBOX_DONE);
	glovebox_result_free(result);
}

static void a_cancel_without_a_call_is_for_the_next_one(void **state)
{
	struct world *world = *state;
	struct glovebox_result *result;

	world_open(world, NULL);
	glovebox_cancel(world->session);
	glovebox_cancel(world->session);
	result = glovebox_call(world->session, "bash", "{\"command\": \"sleep 60\"}");
	assert_int_equal(result->status, GLOVEBOX_CANCELLED);
	glovebox_result_free(result);
	result = glovebox_call(world->session, "bash", "{\"command\": \"echo again\"}");
	assert_int_equal(result->status, GLOVEBOX_DONE);
	glovebox_result_free(result);
}

/* ---- limits and leaks ---- */

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

/* Its groups, in every hierarchy some levels deep. */
static size_t count_groups(int maker)
{
	static const char *const levels[] = {"", "*/", "*/*/", "*/*/*/", "*/*/*/*/"};
	size_t count = 0;

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		char pattern[128];
		glob_t found;

		(void)snprintf(pattern, sizeof(pattern), "/sys/fs/cgroup/%sglovebox-%d-*",
			       levels[i], maker);
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
				      "{\"command\": \"for i in $(seq 64); do sleep 1 & done; wait; "
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
	assert_true(maker == 0 || count_groups(maker) > 0);
	/* Workers ready ahead come and go: a few each. */
	assert_in_range(count_names("/proc/self/fd"), descriptors - 20, descriptors + 20);
	if (allocated() > held + FLAT_BYTES)
		fail_msg("grew by %zu bytes", allocated() - held);
	glovebox_close(world->session);
	world->session = NULL;
	assert_int_equal(count_lines("/proc/self/mountinfo"), mounts);
	assert_int_equal(count_names("/proc/self/fd"), before_session);
	assert_true(maker == 0 || count_groups(maker) == 0);
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

enum { KILLS = 30, KILL_STEP_MS = 5, GONE_MS = 5000 };

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
		assert_true(maker == 0 || count_groups(maker) == 0);
	}
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(options_of_another_size_are_refused,
						world_make, world_end),
		cmocka_unit_test_setup_teardown(options_of_an_older_program_are_enough,
						world_make, world_end),
		cmocka_unit_test_setup_teardown(an_error_is_cut_to_its_room, world_make,
						world_end),
		cmocka_unit_test_setup_teardown(a_policy_with_a_slip_is_refused,
						world_make, world_end),
		cmocka_unit_test_setup_teardown(tools_come_with_their_schema, world_make,
						world_end),
		cmocka_unit_test_setup_teardown(a_call_is_answered, world_make, world_end),
		cmocka_unit_test_setup_teardown(nothing_is_written_unless_the_policy_says_so,
						world_make, world_end),
		cmocka_unit_test_setup_teardown(what_is_wrong_is_an_answer, world_make,
						world_end),
		cmocka_unit_test_setup_teardown(a_session_holds_its_commands_to_their_memory,
						world_make, world_end),
		cmocka_unit_test_setup_teardown(a_session_holds_its_commands_to_their_processes,
						world_make, world_end),
		cmocka_unit_test_setup_teardown(a_thousand_commands_leave_nothing,
						world_make, world_end),
		cmocka_unit_test_setup_teardown(a_killed_program_leaves_nothing,
						world_make, world_end),
		cmocka_unit_test_setup_teardown(a_cancel_ends_the_call_under_way,
						world_make, world_end),
		cmocka_unit_test_setup_teardown(a_cancel_without_a_call_is_for_the_next_one,
						world_make, world_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
