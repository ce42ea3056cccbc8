/*
 * Tests of runtime/session with a real cell: this program is its own anchor and worker.
 * The tools are small ones of this file.
 */
#include "../base/unit.h"
#include "room.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "process/program.h"
#include "runtime/call.h"
#include "runtime/files.h"
#include "runtime/session.h"

/* ---- tools ---- */

static enum result_status say(struct call *call, struct tool_result *result)
{
	call_output(call, CALL_STDOUT, STR("fragment"));
	(void)buf_addf(&result->text, "%s in %s", call_text(call, "word"), call->folder);
	return tool_done(result);
}

static enum result_status wait_for_stop(struct call *call, struct tool_result *result)
{
	while (!call_stopped(call))
		;
	return call_stop_result(call, result);
}

static enum result_status ignore_stop(struct call *call, struct tool_result *result)
{
	(void)call;
	while (pause() < 0)
		;
	return tool_done(result);
}

static enum result_status crash(struct call *call, struct tool_result *result)
{
	(void)call;
	(void)result;
	_exit(9);
}

/* What git would follow, left by a call that has no time to clean up. */
static enum result_status plant_and_stick(struct call *call, struct tool_result *result)
{
	(void)!symlink("/nonexistent", ".git");
	return ignore_stop(call, result);
}

static enum result_status plant_and_crash(struct call *call, struct tool_result *result)
{
	(void)!symlink("/nonexistent", ".git");
	return crash(call, result);
}

static enum result_status touch(struct call *call, struct tool_result *result)
{
	const char *path = call_text(call, "path");
	const char *mark = call_seen(call, path);

	(void)buf_addf(&result->text, "%s", mark != NULL ? mark : "unseen");
	call_saw(result, path, "mark-of-this-test");
	call_replaced(result, path, STR("old"));
	return tool_done(result);
}

static enum result_status leave_a_process(struct call *call, struct tool_result *result)
{
	/*
	 * The processes left behind carry the workspace's name, so that they can be
	 * looked for.
	 */
	const char *const argv[] = {
		"/bin/bash", "-c",
		"(exec -a \"$0\" sleep 1000) & (trap '' TERM; exec -a \"$0\" setsid sleep 1000) & :",
		call->workspace, NULL};
	struct program_run run;
	struct err err;

	program_run_init(&run);
	run.start.argv = argv;
	run.start.environment = call->environment;
	run.deadline_ms = call->deadline_ms;
	run.stop_fd = -1;
	run.spill_fd = -1;
	if (!program_follow(&run, &err))
		return tool_fail(result, "%s", err.text);
	result->exit_code = run.exit_code;
	program_run_fini(&run);
	return tool_done(result);
}

static const struct tool_param say_params[] = {
	{"word", PARAM_TEXT, true, "What to say"},
	{0},
};
static const struct tool_param touch_params[] = {
	{"path", PARAM_PATH, true, "A file"},
	{0},
};
static const struct tool_param no_params[] = {{0}};

static const struct tool say_tool = {.name = "say",
				     .description = "Say a word.",
				     .example = "{\"word\": \"hello\"}",
				     .params = say_params,
				     .effects = EFFECT_READS,
				     .timeout_s = 5,
				     .execute = say};
static const struct tool wait_tool = {.name = "wait",
				      .description = "Wait.",
				      .example = "{}",
				      .params = no_params,
				      .effects = EFFECT_READS,
				      .timeout_s = 0.2,
				      .execute = wait_for_stop};
static const struct tool stuck_tool = {.name = "stuck",
				       .description = "Never answer.",
				       .example = "{}",
				       .params = no_params,
				       .effects = EFFECT_READS,
				       .timeout_s = 0.2,
				       .execute = ignore_stop};
static const struct tool crash_tool = {.name = "crash",
				       .description = "Die.",
				       .example = "{}",
				       .params = no_params,
				       .effects = EFFECT_READS,
				       .timeout_s = 5,
				       .execute = crash};
static const struct tool plant_stuck_tool = {.name = "plant_stuck",
					     .description = "Plant, never answer.",
					     .example = "{}",
					     .params = no_params,
					     .effects = EFFECT_RUNS,
					     .timeout_s = 0.2,
					     .execute = plant_and_stick};
static const struct tool plant_crash_tool = {.name = "plant_crash",
					     .description = "Plant and die.",
					     .example = "{}",
					     .params = no_params,
					     .effects = EFFECT_WRITES,
					     .timeout_s = 5,
					     .execute = plant_and_crash};
static const struct tool touch_tool = {.name = "touch",
				       .description = "Touch a file.",
				       .example = "{\"path\": \"a\"}",
				       .params = touch_params,
				       .effects = EFFECT_WRITES,
				       .timeout_s = 5,
				       .execute = touch};
static const struct tool leave_tool = {.name = "leave",
				       .description = "Leave processes behind.",
				       .example = "{}",
				       .params = no_params,
				       .effects = EFFECT_RUNS,
				       .timeout_s = 5,
				       .execute = leave_a_process};
static const struct tool hidden_tool = {.name = "hidden",
					.description = "For the front.",
					.example = "{}",
					.params = no_params,
					.effects = EFFECT_READS,
					.timeout_s = 5,
					.internal = true,
					.execute = wait_for_stop};
static const struct tool *const tools[] = {&say_tool,         &wait_tool,
					   &stuck_tool,       &crash_tool,
					   &touch_tool,       &leave_tool,
					   &hidden_tool,      &plant_stuck_tool,
					   &plant_crash_tool, NULL};

/* ---- a session in a temporary folder ---- */

struct fixture {
	struct room room;
	struct buf events;
	bool refuse;
	int cancel_fd;
};

static bool note_event(void *context, const struct event *event, struct err *err)
{
	struct fixture *fixture = context;

	(void)buf_addf(&fixture->events, "%s ", event_kind_name(event->kind));
	if (fixture->refuse && event->kind == EVENT_TOOL_BEGAN)
		return err_set(err, ENOSPC, "no room");
	return true;
}

static struct policy *policy_of(const char *folder)
{
	struct policy *policy = policy_new("test", folder);

	policy->write.items = memory_array(1, sizeof(struct policy_path));
	policy->write.items[0].text = memory_copy(".");
	policy->write.count = 1;
	policy->write.given = true;
	policy->limits.wall_s = 5;
	return policy;
}

static int open_session(void **state)
{
	struct fixture *fixture = memory_alloc(sizeof(*fixture));

	if (!room_make(&fixture->room))
		return -1;
	buf_init(&fixture->events, 1 << 16);
	fixture->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	const struct session_options options = {
		.take_policy = policy_of(fixture->room.folder),
		.tools = tools,
		.sink = {note_event, fixture},
		.ready_workers = 1,
		.cancel_fd = fixture->cancel_fd,
	};
	if (!room_open(&fixture->room, options))
		return -1;
	*state = fixture;
	return 0;
}

static int close_session(void **state)
{
	struct fixture *fixture = *state;

	room_close(&fixture->room);
	buf_fini(&fixture->events);
	fd_close(&fixture->cancel_fd);
	free(fixture);
	return 0;
}

static void a_call_goes_all_the_way(void **state)
{
	struct fixture *fixture = *state;
	struct tool_result result;
	char wanted[128];

	room_call(&fixture->room, "say", "{\"word\": \"hello\"}", &result);
	assert_int_equal(result.status, RESULT_DONE);
	(void)snprintf(wanted, sizeof(wanted), "hello in %s", fixture->room.folder);
	assert_string_equal(result.text.data, wanted);
	assert_int_equal(result.level, 3);
	assert_true(result.seconds > 0);
	assert_string_equal(fixture->events.data, "tool_began tool_output tool_ended ");
	tool_result_fini(&result);
}

static void mistakes_are_results_and_are_recorded(void **state)
{
	static const struct {
		const char *tool, *arguments, *wanted;
	} rows[] = {
		{"sya", "{}", "Did you mean say?"},
		{"hidden", "{}", "There is no tool \"hidden\""},
		{"say", "{}", "word"},
		{"say", "{\"word\": ", "column"},
		{"say", "{\"word\": \"a\", \"loud\": true}", "loud"},
		{"touch", "{\"path\": \"../../../../../..\"}", "above /"},
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct tool_result result;
		buf_clear(&fixture->events);
		room_call(&fixture->room, rows[i].tool, rows[i].arguments, &result);
		assert_int_equal(result.status, RESULT_FAILED);
		assert_non_null(strstr(result.text.data, rows[i].wanted));
		assert_string_equal(fixture->events.data, "tool_began tool_ended ");
		tool_result_fini(&result);
	}
}

static void what_the_policy_denies_does_not_run(void **state)
{
	struct fixture *fixture = *state;
	struct tool_result result;

	room_call(&fixture->room, "touch", "{\"path\": \"/etc/hostname\"}", &result);
	assert_int_equal(result.status, RESULT_DENIED);
	assert_null(session_changed(fixture->room.session)[0]);
	tool_result_fini(&result);
}

static void what_cannot_be_recorded_does_not_run(void **state)
{
	struct fixture *fixture = *state;
	struct tool_result result;

	fixture->refuse = true;
	room_call(&fixture->room, "touch", "{\"path\": \"a\"}", &result);
	assert_int_equal(result.status, RESULT_FAILED);
	assert_non_null(strstr(result.text.data, "no room"));
	assert_null(session_changed(fixture->room.session)[0]);
	tool_result_fini(&result);
}

static void a_deadline_ends_a_call(void **state)
{
	struct fixture *fixture = *state;
	struct tool_result result;

	room_call(&fixture->room, "wait", "{}", &result);
	assert_int_equal(result.status, RESULT_TIMED_OUT);
	tool_result_fini(&result);
}

static void a_tool_that_ignores_its_deadline_is_killed(void **state)
{
	struct fixture *fixture = *state;
	struct tool_result result;

	room_call(&fixture->room, "stuck", "{}", &result);
	assert_int_equal(result.status, RESULT_TIMED_OUT);
	assert_non_null(strstr(result.text.data, "by force"));
	tool_result_fini(&result);
	room_call(&fixture->room, "say", "{\"word\": \"still here\"}", &result);
	assert_int_equal(result.status, RESULT_DONE);
	tool_result_fini(&result);
}

/* Run TOOL, whose worker dies; what it planted is put away before the answer comes. */
static void assert_planted_is_put_away(struct fixture *fixture, const char *tool,
				       enum result_status status)
{
	struct tool_result result;
	char path[256];
	struct stat st;

	room_call(&fixture->room, tool, "{}", &result);
	assert_int_equal(result.status, status);
	const struct value *list = value_member(result.details, "quarantined");
	assert_int_equal(value_count(list), 1);
	(void)snprintf(path, sizeof(path), "%s/.git", fixture->room.folder);
	assert_int_not_equal(lstat(path, &st), 0);
	(void)snprintf(path, sizeof(path), "%s/%s", fixture->room.folder,
		       value_text(value_member(value_item(list, 0), "moved_to")));
	assert_int_equal(unlink(path), 0);
	tool_result_fini(&result);
	/* And no audit is left to do. */
	room_call(&fixture->room, "say", "{\"word\": \"on\"}", &result);
	assert_int_equal(result.status, RESULT_DONE);
	assert_null(result.details);
	tool_result_fini(&result);
}

static void what_a_killed_worker_left_is_looked_at(void **state)
{
	assert_planted_is_put_away(*state, "plant_stuck", RESULT_TIMED_OUT);
}

static void what_a_dead_worker_left_is_looked_at(void **state)
{
	assert_planted_is_put_away(*state, "plant_crash", RESULT_FAILED);
}

static void a_worker_that_dies_takes_one_call_with_it(void **state)
{
	struct fixture *fixture = *state;
	struct tool_result result;

	room_call(&fixture->room, "crash", "{}", &result);
	assert_int_equal(result.status, RESULT_FAILED);
	assert_non_null(strstr(result.text.data, "ended before it answered"));
	tool_result_fini(&result);
	room_call(&fixture->room, "say", "{\"word\": \"next\"}", &result);
	assert_int_equal(result.status, RESULT_DONE);
	tool_result_fini(&result);
}

static void what_was_read_travels_with_the_next_call(void **state)
{
	struct fixture *fixture = *state;
	struct tool_result result;
	char path[128], arguments[160];

	(void)snprintf(path, sizeof(path), "%s/a", fixture->room.folder);
	(void)snprintf(arguments, sizeof(arguments), "{\"path\": \"%s\"}", path);
	room_call(&fixture->room, "touch", arguments, &result);
	assert_string_equal(result.text.data, "unseen");
	tool_result_fini(&result);
	room_call(&fixture->room, "touch", arguments, &result);
	assert_string_equal(result.text.data, "mark-of-this-test");
	tool_result_fini(&result);
	assert_string_equal(session_changed(fixture->room.session)[0], "a");
	assert_null(session_changed(fixture->room.session)[1]);
}

static void calls_run_side_by_side_and_can_be_cancelled(void **state)
{
	struct fixture *fixture = *state;
	struct running *running[3];
	const uint64_t one = 1;
	const struct request request = {.tool = "wait",
					.arguments_text = STR("{}"),
					.timeout_s = 60};

	for (size_t i = 0; i < 3; i++)
		running[i] = session_start(fixture->room.session, &request, NULL, NULL);
	assert_int_equal(write(fixture->cancel_fd, &one, sizeof(one)), (ssize_t)sizeof(one));
	for (size_t i = 0; i < 3; i++) {
		const struct tool_result *result = room_finish(&fixture->room, running[i]);
		assert_int_equal(result->status, RESULT_CANCELLED);
	}
	for (size_t i = 0; i < 3; i++)
		running_free(running[i]);
}

/* How many processes of this machine have NAME as their first argument. */
static size_t processes_named(const char *name)
{
	DIR *folder = opendir("/proc");
	size_t found = 0;
	char path[300], line[256];

	assert_non_null(folder);
	for (const struct dirent *at = readdir(folder); at != NULL; at = readdir(folder)) {
		(void)snprintf(path, sizeof(path), "/proc/%s/cmdline", at->d_name);
		auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd >= 0 ? read(fd, line, sizeof(line) - 1) : -1;
		if (n <= 0)
			continue;
		line[n] = '\0';
		found += strcmp(line, name) == 0;
	}
	(void)closedir(folder);
	return found;
}

static void nothing_a_command_started_outlives_it(void **state)
{
	struct fixture *fixture = *state;
	struct tool_result result;

	room_call(&fixture->room, "leave", "{}", &result);
	assert_int_equal(result.status, RESULT_DONE);
	assert_int_equal(result.exit_code, 0);
	assert_int_equal(processes_named(fixture->room.folder), 0);
	tool_result_fini(&result);
}

static size_t descriptors(void)
{
	size_t count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void many_calls_leave_nothing_behind(void **state)
{
	struct fixture *fixture = *state;
	struct tool_result result;
	size_t before = 0;

	for (int round = 0; round < 30; round++) {
		room_call(&fixture->room, "leave", "{}", &result);
		assert_int_equal(result.status, RESULT_DONE);
		tool_result_fini(&result);
		if (round == 4)
			before = descriptors();
	}
	/*
	 * A worker more or less may be on its way or going: a socket, a pidfd, and two counts of
	 * its group, which come when that process finds the time. One descriptor a call that
	 * stayed would be 25.
	 */
	enum { MORE_OR_LESS = 3 * 4 };
	const int64_t until = clock_now_ms() + 10000;
	while (descriptors() > before + MORE_OR_LESS && clock_now_ms() < until)
		loop_turn(session_loop(fixture->room.session), clock_now_ms() + 50);
	assert_true(descriptors() <= before + MORE_OR_LESS);
}

static void a_missing_workspace_is_an_error_with_its_name(void **state)
{
	struct session *session;
	struct err err = {0};
	const struct session_options options = {
		.workspace = "/nonexistent/folder",
		.take_policy = policy_of("/nonexistent/folder"),
		.tools = tools,
		.cancel_fd = -1,
	};

	(void)state;
	assert_false(session_open(&options, &session, &err));
	assert_non_null(strstr(err.text, "/nonexistent/folder"));
	assert_int_not_equal(err.code, ECHILD);
}

static void a_missing_folder_of_a_shipped_role_is_made_and_goes_again(void **state)
{
	struct fixture *fixture = *state;
	struct policy *policy = policy_of(fixture->room.folder);
	struct session *session = NULL;
	struct err err = {0};
	char path[128];

	free(policy->write.items[0].text);
	policy->write.items[0].text = memory_copy("reports");
	const struct session_options refused = {.workspace = fixture->room.folder,
						.take_policy = policy,
						.tools = tools,
						.cancel_fd = -1};
	assert_false(session_open(&refused, &session, &err));
	assert_non_null(strstr(err.text, "reports"));

	policy = policy_of(fixture->room.folder);
	free(policy->write.items[0].text);
	policy->write.items[0].text = memory_copy("reports");
	policy->write.items[0].shipped = true;
	const struct session_options taken = {.workspace = fixture->room.folder,
					      .take_policy = policy,
					      .tools = tools,
					      .cancel_fd = -1};
	(void)snprintf(path, sizeof(path), "%s/reports", fixture->room.folder);
	assert_true(session_open(&taken, &session, &err));
	assert_int_equal(access(path, F_OK), 0);
	session_close(session);
	assert_int_equal(access(path, F_OK), -1);
}

static void a_program_that_is_no_anchor_is_a_set_up_failure(void **state)
{
	struct session *session;
	struct err err = {0};
	const struct session_options options = {
		.workspace = ((struct fixture *)*state)->room.folder,
		.take_policy = policy_of(((struct fixture *)*state)->room.folder),
		.tools = tools,
		.program = "/bin/true",
		.cancel_fd = -1,
	};

	assert_false(session_open(&options, &session, &err));
	assert_int_equal(err.code, ECHILD);
}

#define IN_SESSION(test) \
	cmocka_unit_test_setup_teardown(test, open_session, close_session)

int main(int argc, char **argv)
{
	const struct CMUnitTest cases[] = {
		IN_SESSION(a_call_goes_all_the_way),
		IN_SESSION(mistakes_are_results_and_are_recorded),
		IN_SESSION(what_the_policy_denies_does_not_run),
		IN_SESSION(what_cannot_be_recorded_does_not_run),
		IN_SESSION(a_deadline_ends_a_call),
		IN_SESSION(a_tool_that_ignores_its_deadline_is_killed),
		IN_SESSION(what_a_killed_worker_left_is_looked_at),
		IN_SESSION(what_a_dead_worker_left_is_looked_at),
		IN_SESSION(a_worker_that_dies_takes_one_call_with_it),
		IN_SESSION(what_was_read_travels_with_the_next_call),
		IN_SESSION(calls_run_side_by_side_and_can_be_cancelled),
		IN_SESSION(nothing_a_command_started_outlives_it),
		IN_SESSION(many_calls_leave_nothing_behind),
		cmocka_unit_test(a_missing_workspace_is_an_error_with_its_name),
		IN_SESSION(a_missing_folder_of_a_shipped_role_is_made_and_goes_again),
		IN_SESSION(a_program_that_is_no_anchor_is_a_set_up_failure),
	};

	session_role(argc, argv, tools);
	return cmocka_run_group_tests(cases, NULL, NULL);
}
