/*
 * Tests of the looks by which commands become steps of undo, when these come to nothing: each
 * command of which nobody has seen what it changed says so, in its result and in the details, or,
 * when it was answered before, in a notice. A look whose worker ends is made once more. What looks
 * and commands do is told by files of the workspace.
 */
#include "../base/tree.h"
#include "../base/unit.h"
#include "room.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "tool/call.h"
#include "undo/list.h"

enum {
	SOON_MS = 20000,   /* sanitizers, a busy machine; far from for ever */
	LONG_US = 1000000, /* so long that nobody waits for the next look */
	POLL_US = 1000,
};

static bool there_is(const char *name)
{
	return access(name, F_OK) == 0;
}

static void put(const char *name)
{
	const int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(close(fd), 0);
}

static void wait_for(struct call *call, const char *name)
{
	while (!there_is(name) && !call_stopped(call))
		(void)usleep(POLL_US);
}

static enum result_status look(struct call *call, struct tool_result *result)
{
	struct value *details = tool_details(result);

	if ((value_integer(value_member(call->arguments, "wishes")) & UNDO_LOOK_STEP) != 0)
		put("steps");
	if (there_is("die") || unlink("die-once") == 0)
		_exit(9);
	if (there_is("fail"))
		return tool_fail(result, "the disk is full");
	if (there_is("hold")) {
		put("looking");
		wait_for(call, "go");
	}
	value_set_integer(details, "us", there_is("slow") ? LONG_US : 0);
	value_set_integer(details, "left_files", there_is("much") ? 7 : 0);
	return tool_done(result);
}

static enum result_status work(struct call *call, struct tool_result *result)
{
	const char *name = value_text(value_member(call->arguments, "make"));

	if (name != NULL)
		put(name);
	if (value_is_true(value_member(call->arguments, "background"))) {
		wait_for(call, "end");
		put("ended");
	}
	return tool_done(result);
}

static const struct row look_params[] = {
	{"log", ROW_COUNT, true, "Number of the log"},
	{"began_ms", ROW_COUNT, false, "When the command began", .aliases = NULL},
	{"ended_ms", ROW_COUNT, false, "When it ended", .aliases = NULL},
	{"looks", ROW_COUNT, false, "Looks that were taken", .aliases = NULL},
	{"wishes", ROW_COUNT, false, "What is wanted", .aliases = NULL},
	{0},
};
static const struct row work_params[] = {
	{"make", ROW_TEXT, false, "A file"},
	{"background", ROW_FLAG, false, "As a job, until there is the file end"},
	{0},
};
static const struct row job_params[] = {
	{"action", ROW_TEXT, true, "What"},
	{0},
};
static const struct tool checkpoint = {.name = "checkpoint",
				       .description = "Look.",
				       .example = "{\"log\": 1}",
				       .params = look_params,
				       .effects = EFFECT_READS,
				       .internal = true,
				       .resident = true,
				       .timeout_s = 20,
				       .execute = look};
static const struct tool command = {.name = "command",
				    .description = "Run.",
				    .example = "{}",
				    .params = work_params,
				    .effects = EFFECT_RUNS,
				    .timeout_s = 20,
				    .timeout_max_s = 20,
				    .job_max_s = 20,
				    .execute = work};
static const struct tool job_tool = {.name = "job",
				     .description = "Ask a job.",
				     .example = "{\"action\": \"list\"}",
				     .params = job_params,
				     .effects = EFFECT_RUNS,
				     .timeout_s = 20,
				     .where = IN_JOBS};
static const struct tool *const tools[] = {&checkpoint, &command, &job_tool, NULL};

struct unseen {
	struct room room;
	char store[64];
	struct buf notices;
};

static bool take_event(void *context, const struct event *event, struct err *err)
{
	struct unseen *unseen = context;

	(void)err;
	if (event->kind == EVENT_NOTICE)
		(void)buf_addstr(&unseen->notices, event->text);
	return true;
}

static int open_session(void **state)
{
	struct unseen *unseen = *state = memory_alloc(sizeof(*unseen));

	buf_init(&unseen->notices, 1 << 16);
	(void)snprintf(unseen->store, sizeof(unseen->store), "/tmp/unseen-test-XXXXXX");
	if (!room_make(&unseen->room) || mkdtemp(unseen->store) == NULL ||
	    chdir(unseen->room.folder) < 0)
		return -1;
	const struct session_options options = {
		.take_policy = room_policy(unseen->room.folder),
		.tools = tools,
		.undo_folder = unseen->store,
		.ready_workers = 1,
		.sink = {take_event, unseen},
	};
	return room_open(&unseen->room, options) ? 0 : -1;
}

static int close_session(void **state)
{
	struct unseen *unseen = *state;

	assert_int_equal(chdir("/"), 0);
	room_close(&unseen->room);
	tree_remove(unseen->store);
	buf_fini(&unseen->notices);
	free(unseen);
	return 0;
}

static void end(struct unseen *unseen)
{
	session_close(unseen->room.session);
	unseen->room.session = NULL;
}

/* Of RESULT: undo does not know it, for WHY; NULL: it does. */
static void check(const struct tool_result *result, const char *why)
{
	const char *told = value_text(value_member(result->details, "no_undo"));

	assert_int_equal(result->status, RESULT_DONE);
	if (why == NULL) {
		assert_null(told);
		assert_null(strstr(result->text.data, "cannot be undone"));
		return;
	}
	assert_non_null(told);
	assert_non_null(strstr(told, why));
	assert_non_null(strstr(result->text.data, "cannot be undone"));
	assert_non_null(strstr(result->text.data, why));
}

static void run(const struct unseen *unseen, const char *arguments, const char *why)
{
	struct tool_result result;

	room_call(&unseen->room, "command", arguments, &result);
	check(&result, why);
	tool_result_fini(&result);
}

static struct running *start(const struct unseen *unseen, const char *arguments)
{
	const struct request request = {.tool = "command",
					.arguments_text = str_of(arguments)};

	return session_start(unseen->room.session, &request, NULL, NULL);
}

static void turn_until_there_is(const struct unseen *unseen, const char *name)
{
	const int64_t deadline = clock_now_ms() + SOON_MS;

	while (!there_is(name) && clock_now_ms() < deadline)
		loop_turn(session_loop(unseen->room.session), clock_now_ms() + 1);
	assert_true(there_is(name));
}

static off_t size_of(const char *name)
{
	struct stat st;

	return stat(name, &st) == 0 ? st.st_size : 0;
}

static void a_look_whose_worker_ends_is_made_again(void **state)
{
	const struct unseen *unseen = *state;

	put("die-once");
	run(unseen, "{}", NULL);
	run(unseen, "{\"make\": \"die-once\"}", NULL);
	assert_false(there_is("die-once"));
	run(unseen, "{}", NULL);
}

static void each_command_says_that_nobody_has_looked(void **state)
{
	const struct unseen *unseen = *state;

	run(unseen, "{}", NULL);
	run(unseen, "{\"make\": \"die\"}", "ended before it answered");
	run(unseen, "{}", "ended before it answered");
	run(unseen, "{}", "ended before it answered");
}

static void it_is_said_beside_other_things(void **state)
{
	const struct unseen *unseen = *state;
	struct tool_result result;

	put("much");
	put("slow");
	/* What the first look has to say is not told yet when the second fails. */
	session_checkpoint(unseen->room.session, false);
	room_call(&unseen->room, "command", "{\"make\": \"fail\"}", &result);
	assert_non_null(strstr(result.text.data, "more than undo keeps"));
	tool_result_fini(&result);
	run(unseen, "{}", "the disk is full");
}

static void what_was_answered_before_is_told_by_a_notice(void **state)
{
	const struct unseen *unseen = *state;
	const int64_t deadline = clock_now_ms() + SOON_MS;

	put("slow");
	run(unseen, "{}", NULL);
	run(unseen, "{\"make\": \"fail\"}", NULL);
	while (unseen->notices.size == 0 && clock_now_ms() < deadline)
		loop_turn(session_loop(unseen->room.session), deadline);
	assert_non_null(strstr(unseen->notices.data, "cannot take back"));
	assert_non_null(strstr(unseen->notices.data, "the disk is full"));
	run(unseen, "{}", "the disk is full");
}

static void also_when_the_session_ends(void **state)
{
	struct unseen *unseen = *state;

	put("slow");
	run(unseen, "{}", NULL);
	run(unseen, "{\"make\": \"die\"}", NULL);
	end(unseen);
	assert_non_null(strstr(unseen->notices.data, "cannot take back"));
}

static void who_cancels_does_not_wait_and_loses_no_step(void **state)
{
	const struct unseen *unseen = *state;

	run(unseen, "{}", NULL);
	struct running *running = start(unseen, "{\"make\": \"hold\"}");
	turn_until_there_is(unseen, "looking");
	assert_false(running_is_done(running));
	running_cancel(running);
	assert_true(running_is_done(running));
	check(running_result(running), NULL);
	running_free(running);
	put("go");
	run(unseen, "{}", NULL);
}

static void a_job_that_ends_in_the_midst_of_a_look_gets_another(void **state)
{
	const struct unseen *unseen = *state;

	put("slow");
	run(unseen, "{}", NULL);
	struct running *job = start(unseen, "{\"make\": \"a\", \"background\": true}");
	assert_int_equal(room_finish(&unseen->room, job)->status, RESULT_DONE);
	running_free(job);
	run(unseen, "{\"make\": \"hold\"}", NULL);
	turn_until_there_is(unseen, "looking");
	const off_t steps = size_of("steps");
	put("end");
	turn_until_there_is(unseen, "ended");
	for (int i = 0; i < 200; i++)
		loop_turn(session_loop(unseen->room.session), clock_now_ms() + 1);
	put("go");
	run(unseen, "{}", NULL);
	assert_true(size_of("steps") > steps);
}

static void a_job_that_ends_with_the_session_gets_a_look(void **state)
{
	struct unseen *unseen = *state;

	run(unseen, "{}", NULL);
	struct running *job = start(unseen, "{\"make\": \"a\", \"background\": true}");
	assert_int_equal(room_finish(&unseen->room, job)->status, RESULT_DONE);
	running_free(job);
	const off_t steps = size_of("steps");
	end(unseen);
	assert_true(there_is("ended"));
	assert_int_equal(size_of("steps"), steps + 1);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, open_session, close_session)

int main(int argc, char **argv)
{
	const struct CMUnitTest cases[] = {
		CASE(a_look_whose_worker_ends_is_made_again),
		CASE(each_command_says_that_nobody_has_looked),
		CASE(it_is_said_beside_other_things),
		CASE(what_was_answered_before_is_told_by_a_notice),
		CASE(also_when_the_session_ends),
		CASE(who_cancels_does_not_wait_and_loses_no_step),
		CASE(a_job_that_ends_in_the_midst_of_a_look_gets_another),
		CASE(a_job_that_ends_with_the_session_gets_a_look),
	};

	session_role(argc, argv, tools);
	return cmocka_run_group_tests(cases, NULL, NULL);
}
