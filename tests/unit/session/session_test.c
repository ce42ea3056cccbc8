/*
 * Tests of session/session with a real cell: this program is its own anchor and worker.
 * The tools are those of small_tools.c.
 */
#include "../base/unit.h"
#include "room.h"
#include "small_tools.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "session/session.h"

static struct policy *brief_policy(const char *folder)
{
	struct policy *policy = room_policy(folder);

	policy->limits.wall_s = 5;
	return policy;
}

static int open_session(void **state)
{
	struct room *room = room_new();

	if (room == NULL)
		return -1;
	*state = room;
	const struct session_options options = {
		.take_policy = brief_policy(room->folder),
		.tools = small_tools,
		.ready_workers = 1,
	};
	return room_open(room, options) ? 0 : -1;
}

static void a_call_goes_all_the_way(void **state)
{
	struct room *room = *state;
	struct tool_result result;
	char wanted[128];

	room_call(room, "say", "{\"word\": \"hello\"}", &result);
	assert_int_equal(result.status, RESULT_DONE);
	(void)snprintf(wanted, sizeof(wanted), "hello in %s", room->folder);
	assert_string_equal(result.text.data, wanted);
	assert_int_equal(result.strength.level, 3);
	assert_true(result.seconds > 0);
	assert_string_equal(room->events.data, "tool_began tool_output tool_ended ");
	tool_result_fini(&result);
}

/* Who looks at no details gets none, and who wants no events either. */
static void what_nobody_looks_at_is_not_made(void **state)
{
	struct room *room = *state;
	struct request request = {.tool = "say",
				  .arguments_text = STR("{\"word\": \"hello\"}")};
	struct tool_result result;

	session_call(room->session, &request, &result);
	assert_string_equal(value_text(value_member(result.details, "said")), "hello");
	tool_result_fini(&result);
	buf_clear(&room->events);
	request.quiet = request.terse = true;
	session_call(room->session, &request, &result);
	assert_int_equal(result.status, RESULT_DONE);
	assert_int_equal(strncmp(result.text.data, "hello in ", 9), 0);
	assert_null(result.details);
	assert_string_equal(room->events.data, "");
	tool_result_fini(&result);
	/* What a failure leaves in them may be to be judged. */
	request.tool = "stuck";
	request.arguments_text = STR("{}");
	session_call(room->session, &request, &result);
	assert_int_equal(result.status, RESULT_TIMED_OUT);
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
	struct room *room = *state;

	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct tool_result result;
		buf_clear(&room->events);
		room_call(room, rows[i].tool, rows[i].arguments, &result);
		assert_int_equal(result.status, RESULT_FAILED);
		assert_non_null(strstr(result.text.data, rows[i].wanted));
		assert_string_equal(room->events.data, "tool_began tool_ended ");
		tool_result_fini(&result);
	}
}

static void what_the_policy_denies_does_not_run(void **state)
{
	struct room *room = *state;
	struct tool_result result;

	room_call(room, "touch", "{\"path\": \"/etc/hostname\"}", &result);
	assert_int_equal(result.status, RESULT_DENIED);
	assert_null(session_changed(room->session)[0]);
	tool_result_fini(&result);
}

static void what_cannot_be_recorded_does_not_run(void **state)
{
	struct room *room = *state;
	struct tool_result result;

	room->refuses = true;
	room_call(room, "touch", "{\"path\": \"a\"}", &result);
	assert_int_equal(result.status, RESULT_FAILED);
	assert_non_null(strstr(result.text.data, "no room"));
	assert_null(session_changed(room->session)[0]);
	tool_result_fini(&result);
}

static void a_deadline_ends_a_call(void **state)
{
	struct room *room = *state;
	struct tool_result result;

	room_call(room, "wait", "{}", &result);
	assert_int_equal(result.status, RESULT_TIMED_OUT);
	tool_result_fini(&result);
}

static void a_tool_that_ignores_its_deadline_is_killed(void **state)
{
	struct room *room = *state;
	struct tool_result result;

	room_call(room, "stuck", "{}", &result);
	assert_int_equal(result.status, RESULT_TIMED_OUT);
	assert_non_null(strstr(result.text.data, "by force"));
	tool_result_fini(&result);
	room_call(room, "say", "{\"word\": \"still here\"}", &result);
	assert_int_equal(result.status, RESULT_DONE);
	tool_result_fini(&result);
}

/* Run TOOL, whose worker dies; what it planted is put away before the answer comes. */
static void assert_planted_is_put_away(struct room *room, const char *tool,
				       enum result_status status)
{
	struct tool_result result;
	char path[256];
	struct stat st;

	room_call(room, tool, "{}", &result);
	assert_int_equal(result.status, status);
	const struct value *list = value_member(result.details, "quarantined");
	assert_int_equal(value_count(list), 1);
	(void)snprintf(path, sizeof(path), "%s/.git", room->folder);
	assert_int_not_equal(lstat(path, &st), 0);
	(void)snprintf(path, sizeof(path), "%s/%s", room->folder,
		       value_text(value_member(value_item(list, 0), "moved_to")));
	assert_int_equal(unlink(path), 0);
	tool_result_fini(&result);
	/* And no audit is left to do. */
	room_call(room, "say", "{\"word\": \"on\"}", &result);
	assert_int_equal(result.status, RESULT_DONE);
	assert_int_equal(value_count(result.details), 1); /* its own */
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
	struct room *room = *state;
	struct tool_result result;

	room_call(room, "crash", "{}", &result);
	assert_int_equal(result.status, RESULT_FAILED);
	assert_non_null(strstr(result.text.data, "ended before it answered"));
	tool_result_fini(&result);
	room_call(room, "say", "{\"word\": \"next\"}", &result);
	assert_int_equal(result.status, RESULT_DONE);
	tool_result_fini(&result);
}

static void what_was_read_travels_with_the_next_call(void **state)
{
	struct room *room = *state;
	struct tool_result result;
	char path[128], arguments[160];

	(void)snprintf(path, sizeof(path), "%s/a", room->folder);
	(void)snprintf(arguments, sizeof(arguments), "{\"path\": \"%s\"}", path);
	room_call(room, "touch", arguments, &result);
	assert_string_equal(result.text.data, "unseen");
	tool_result_fini(&result);
	room_call(room, "touch", arguments, &result);
	assert_string_equal(result.text.data, "mark-of-this-test");
	tool_result_fini(&result);
	assert_non_null(session_changed(room->session)[0]);
	assert_string_equal(session_changed(room->session)[0], "a");
	assert_null(session_changed(room->session)[1]);
}

static void calls_run_side_by_side_and_can_be_cancelled(void **state)
{
	struct room *room = *state;
	struct running *running[3];
	const struct request request = {.tool = "wait",
					.arguments_text = STR("{}"),
					.timeout_s = 60};

	for (size_t i = 0; i < 3; i++)
		running[i] = session_start(room->session, &request, NULL, NULL);
	room_cancel(room);
	for (size_t i = 0; i < 3; i++) {
		const struct tool_result *result = room_finish(room, running[i]);
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
	struct room *room = *state;
	struct tool_result result;

	room_call(room, "leave", "{}", &result);
	assert_int_equal(result.status, RESULT_DONE);
	assert_int_equal(result.exit_code, 0);
	assert_int_equal(processes_named(room->folder), 0);
	tool_result_fini(&result);
}

static size_t descriptors(void)
{
	size_t count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void workers_ahead_are_made_when_the_caller_rests(void **state)
{
	struct room *room = *state;
	const int64_t until = clock_now_ms() + 30000;
	const struct session_options options = {
		.take_policy = brief_policy(room->folder),
		.tools = small_tools,
		.ready_workers = 3,
		.rests = true,
	};
	struct tool_result result;
	size_t before;

	session_close(room->session);
	room->session = NULL;
	assert_true(room_open(room, options));
	room_call(room, "say", "{\"word\": \"one\"}", &result);
	tool_result_fini(&result);
	before = descriptors();
	session_rest(room->session);
	/* Two more: the first is there. */
	while (descriptors() < before + 4 && clock_now_ms() < until)
		loop_turn(session_loop(room->session), clock_now_ms() + 50);
	assert_true(descriptors() >= before + 4);
	room_call(room, "say", "{\"word\": \"two\"}", &result);
	assert_int_equal(result.status, RESULT_DONE);
	tool_result_fini(&result);
}

static void many_calls_leave_nothing_behind(void **state)
{
	struct room *room = *state;
	struct tool_result result;
	size_t before = 0;

	for (int round = 0; round < 30; round++) {
		room_call(room, "leave", "{}", &result);
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
	const int64_t until = clock_now_ms() + 30000;
	while (descriptors() > before + MORE_OR_LESS && clock_now_ms() < until)
		loop_turn(session_loop(room->session), clock_now_ms() + 50);
	assert_true(descriptors() <= before + MORE_OR_LESS);
}

static void a_missing_workspace_is_an_error_with_its_name(void **state)
{
	struct session *session;
	struct err err = {0};
	const struct session_options options = {
		.workspace = "/nonexistent/folder",
		.take_policy = brief_policy("/nonexistent/folder"),
		.tools = small_tools,
		.cancel_fd = -1,
	};

	(void)state;
	assert_false(session_open(&options, &session, &err));
	assert_non_null(strstr(err.text, "/nonexistent/folder"));
	assert_int_not_equal(err.code, ECHILD);
}

static void a_missing_folder_of_a_shipped_role_is_made_and_goes_again(void **state)
{
	struct room *room = *state;
	struct policy *policy = brief_policy(room->folder);
	struct session *session = NULL;
	struct err err = {0};
	char path[128];

	free(policy->write.items[0].text);
	policy->write.items[0].text = memory_copy("reports");
	const struct session_options refused = {.workspace = room->folder,
						.take_policy = policy,
						.tools = small_tools,
						.cancel_fd = -1};
	assert_false(session_open(&refused, &session, &err));
	assert_non_null(strstr(err.text, "reports"));

	policy = brief_policy(room->folder);
	free(policy->write.items[0].text);
	policy->write.items[0].text = memory_copy("reports");
	policy->write.items[0].shipped = true;
	const struct session_options taken = {.workspace = room->folder,
					      .take_policy = policy,
					      .tools = small_tools,
					      .cancel_fd = -1};
	(void)snprintf(path, sizeof(path), "%s/reports", room->folder);
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
		.workspace = ((struct room *)*state)->folder,
		.take_policy = brief_policy(((struct room *)*state)->folder),
		.tools = small_tools,
		.program = "/bin/true",
		.cancel_fd = -1,
	};

	assert_false(session_open(&options, &session, &err));
	assert_int_equal(err.code, ECHILD);
}

static void count_up(void *context)
{
	++*(int *)context;
}

static void what_the_caller_prepares_is_done_while_its_cell_is_made(void **state)
{
	struct room *room = *state;
	int count = 0;
	struct session_options options = {
		.workspace = room->folder,
		.take_policy = brief_policy(room->folder),
		.tools = small_tools,
		.cancel_fd = -1,
		.meanwhile = count_up,
		.meanwhile_context = &count,
	};
	struct session *session = NULL;
	struct err err = {0};

	assert_true(session_open(&options, &session, &err));
	assert_int_equal(count, 1);
	session_close(session);
	/* A call waits for this one: nothing else is done before it. */
	options.take_policy = brief_policy(room->folder);
	options.direct = true;
	assert_true(session_open(&options, &session, &err));
	assert_int_equal(count, 1);
	session_close(session);
}

#define IN_SESSION(test) cmocka_unit_test_setup_teardown(test, open_session, room_end)

int main(int argc, char **argv)
{
	const struct CMUnitTest cases[] = {
		IN_SESSION(a_call_goes_all_the_way),
		IN_SESSION(what_nobody_looks_at_is_not_made),
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
		IN_SESSION(workers_ahead_are_made_when_the_caller_rests),
		IN_SESSION(many_calls_leave_nothing_behind),
		cmocka_unit_test(a_missing_workspace_is_an_error_with_its_name),
		IN_SESSION(a_missing_folder_of_a_shipped_role_is_made_and_goes_again),
		IN_SESSION(a_program_that_is_no_anchor_is_a_set_up_failure),
		IN_SESSION(what_the_caller_prepares_is_done_while_its_cell_is_made),
	};

	session_role(argc, argv, small_tools);
	return cmocka_run_group_tests(cases, NULL, NULL);
}
