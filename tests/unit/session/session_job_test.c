/*
 * Tests of session/jobs with a real cell: any call may become a job, and a call that asks a
 * job is answered, whatever the job's worker does. The tools are of this file.
 */
#include "../base/unit.h"
#include "room.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "session/session.h"
#include "tool/call.h"

/* Until it is stopped. */
static enum result_status slow(struct call *call, struct tool_result *result)
{
	while (!call_stopped(call))
		(void)usleep(1000);
	return call_stop_result(call, result);
}

/* Tells how often it was asked; typing "end" ends it, "die" kills it. */
static enum result_status talk(struct call *call, struct tool_result *result)
{
	bool over = false;
	int asked = 0;

	while (!over && !call->cancelled && clock_now_ms() < call->deadline_ms) {
		struct ask ask;
		struct tool_result answer;

		if (!ask_next(call, &ask)) {
			(void)usleep(1000);
			continue;
		}
		tool_result_init(&answer);
		if (ask.input.data != NULL && str_is(ask.input, "die"))
			_exit(9);
		over = ask.input.data != NULL && str_is(ask.input, "end");
		(void)tool_done(&answer);
		(void)buf_addf(&answer.text, "asked %d times, signal %d", ++asked,
			       ask.signal);
		ask_answer(call, &answer);
		tool_result_fini(&answer);
		ask_fini(&ask);
	}
	(void)buf_adds(&result->text, "all said");
	return tool_done(result);
}

/* Takes questions, and never answers. */
static enum result_status dumb(struct call *call, struct tool_result *result)
{
	struct ask ask;

	while (!call->cancelled) {
		if (ask_next(call, &ask))
			ask_fini(&ask);
		(void)usleep(1000);
	}
	return tool_done(result);
}

static const struct row no_params[] = {{0}};
static const struct row job_params[] = {
	{"id", ROW_COUNT, false, "Which"},
	{"action", ROW_TEXT, true, "What"},
	{"input", ROW_TEXT, false, "To type"},
	{"signal", ROW_TEXT, false, "To send"},
	{"timeout_s", ROW_SECONDS, false, "To wait"},
	{0},
};
static const struct tool slow_tool = {.name = "slow",
				      .description = "Take long.",
				      .example = "{}",
				      .params = no_params,
				      .effects = EFFECT_READS,
				      .timeout_s = 60,
				      .execute = slow};
static const struct tool talk_tool = {.name = "talk",
				      .description = "Talk.",
				      .example = "{}",
				      .params = no_params,
				      .effects = EFFECT_READS,
				      .timeout_s = 60,
				      .answers = true,
				      .execute = talk};
static const struct tool dumb_tool = {.name = "dumb",
				      .description = "Say nothing.",
				      .example = "{}",
				      .params = no_params,
				      .effects = EFFECT_READS,
				      .timeout_s = 60,
				      .answers = true,
				      .execute = dumb};
static const struct tool job_tool = {.name = "job",
				     .description = "Ask a job.",
				     .example = "{\"action\": \"list\"}",
				     .params = job_params,
				     .effects = EFFECT_RUNS,
				     .timeout_s = 20,
				     .timeout_max_s = 60,
				     .where = IN_JOBS};
static const struct tool *const tools[] = {&slow_tool, &talk_tool, &dumb_tool, &job_tool,
					   NULL};

static int open_session(void **state)
{
	struct room *room = room_new();

	if (room == NULL)
		return -1;
	*state = room;
	const struct session_options options = {
		.take_policy = policy_new("test", room->folder),
		.tools = tools,
		.ready_workers = 1,
	};
	return room_open(room, options) ? 0 : -1;
}

static void assert_says(const struct tool_result *result, const char *text)
{
	if (strstr(result->text.data, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", result->text.data, text);
}

/* A call of TOOL, which is a job when this returns: number NUMBER. */
static void begin_job(struct room *room, const char *tool, int64_t number)
{
	const struct request request = {.tool = tool, .arguments_text = STR("{}")};
	struct running *running = session_start(room->session, &request, NULL, NULL);

	assert_true(running_become_job(running));
	assert_false(running_become_job(running));
	const struct tool_result *result = room_finish(room, running);
	assert_int_equal(result->status, RESULT_DONE);
	assert_int_equal(value_integer(value_member(result->details, "job")), number);
	assert_says(result, "It goes on as job ");
	running_free(running);
}

static void ask_job(struct room *room, const char *arguments, enum result_status status,
		    const char *text)
{
	struct tool_result result;

	room_call(room, "job", arguments, &result);
	assert_int_equal(result.status, status);
	assert_says(&result, text);
	tool_result_fini(&result);
}

static void any_call_can_become_a_job_and_its_caller_is_answered(void **state)
{
	struct room *room = *state;

	begin_job(room, "slow", 1);
	ask_job(room, "{\"action\": \"read\"}", RESULT_DONE, "job 1 (slow) is running");
	ask_job(room, "{\"action\": \"input\", \"input\": \"x\"}", RESULT_FAILED,
		"takes no input");
	ask_job(room, "{\"action\": \"signal\", \"signal\": \"HUP\"}", RESULT_FAILED,
		"TERM ends it");
	ask_job(room, "{\"action\": \"signal\"}", RESULT_DONE, "Cancelled");
	ask_job(room, "{\"action\": \"list\"}", RESULT_DONE, "ended, cancelled");
	const char *notice = strstr(room->events.data, "notice");
	assert_non_null(notice);
	assert_null(strstr(notice + 1, "notice"));
}

static void a_call_that_outlasts_its_callers_patience_becomes_one(void **state)
{
	struct room *room = *state;
	const struct request request = {.tool = "slow",
					.arguments_text = STR("{}"),
					.patience_s = 0.05};
	struct tool_result result;

	session_call(room->session, &request, &result);
	assert_int_equal(result.status, RESULT_DONE);
	assert_says(&result, "It goes on as job 1");
	tool_result_fini(&result);
}

static void a_worker_is_asked_and_its_answer_is_the_calls(void **state)
{
	struct room *room = *state;

	begin_job(room, "talk", 1);
	ask_job(room, "{\"action\": \"read\"}", RESULT_DONE, "asked 2 times, signal 0");
	/* The signal, and then a look at what came of it. */
	ask_job(room, "{\"action\": \"signal\", \"signal\": \"USR1\"}", RESULT_DONE,
		"asked 4 times");
	ask_job(room, "{\"action\": \"wait\", \"timeout_s\": 0.05}", RESULT_DONE,
		"asked 5 times");
	ask_job(room, "{\"action\": \"input\"}", RESULT_FAILED, "nothing to type");
	ask_job(room, "{\"action\": \"input\", \"input\": \"end\"}", RESULT_DONE,
		"all said");
	ask_job(room, "{\"action\": \"read\"}", RESULT_DONE, "all said");
}

static void a_worker_that_dies_ends_its_job_and_says_so(void **state)
{
	struct room *room = *state;

	begin_job(room, "talk", 1);
	ask_job(room, "{\"action\": \"input\", \"input\": \"die\"}", RESULT_FAILED,
		"ended before it answered");
	begin_job(room, "talk", 2);
}

static void a_worker_that_never_answers_is_not_waited_for(void **state)
{
	struct room *room = *state;
	const struct request request = {.tool = "dumb", .arguments_text = STR("{}")};
	struct running *running = session_start(room->session, &request, NULL, NULL);
	int64_t began = clock_now_ms();

	assert_true(running_become_job(running));
	assert_says(room_finish(room, running), "too busy to answer");
	assert_true(clock_now_ms() - began < 20000);
	running_free(running);
}

static void a_cancel_ends_calls_and_leaves_jobs(void **state)
{
	struct room *room = *state;
	const struct request request = {.tool = "job",
					.arguments_text = STR("{\"action\": \"wait\"}")};

	begin_job(room, "talk", 1);
	struct running *running = session_start(room->session, &request, NULL, NULL);
	room_cancel(room);
	assert_int_equal(room_finish(room, running)->status, RESULT_CANCELLED);
	running_free(running);
	ask_job(room, "{\"action\": \"list\"}", RESULT_DONE, "job 1: talk — running");
}

/* The worker never answers, so the call does not become known as a job. */
static void a_cancel_ends_a_job_that_nobody_was_told_of(void **state)
{
	struct room *room = *state;
	const struct request request = {.tool = "dumb", .arguments_text = STR("{}")};
	struct running *running = session_start(room->session, &request, NULL, NULL);

	assert_true(running_become_job(running));
	running_cancel(running);
	const struct tool_result *result = room_finish(room, running);
	assert_null(strstr(result->text.data, "goes on"));
	running_free(running);
	ask_job(room, "{\"action\": \"list\"}", RESULT_DONE, "job 1: dumb — ended");
}

static void so_many_run_and_one_more_stays_an_ordinary_call(void **state)
{
	struct room *room = *state;
	const struct request request = {.tool = "slow", .arguments_text = STR("{}")};

	for (int64_t i = 1; i <= SESSION_JOBS_MAX; i++)
		begin_job(room, "slow", i);
	struct running *running = session_start(room->session, &request, NULL, NULL);
	assert_false(running_become_job(running));
	running_free(running);
	ask_job(room, "{\"id\": 3, \"action\": \"signal\"}", RESULT_DONE, "Cancelled");
	begin_job(room, "slow", SESSION_JOBS_MAX + 1);
}

static void of_those_that_ended_the_newest_stay(void **state)
{
	struct room *room = *state;

	for (int64_t i = 1; i <= 2 * SESSION_JOBS_MAX; i++) {
		char arguments[64];

		begin_job(room, "talk", i);
		(void)snprintf(arguments, sizeof(arguments),
			       "{\"id\": %d, \"action\": \"input\", \"input\": \"end\"}",
			       (int)i);
		ask_job(room, arguments, RESULT_DONE, "all said");
	}
	ask_job(room, "{\"id\": 1, \"action\": \"read\"}", RESULT_FAILED,
		"There is no job 1.");
	ask_job(room, "{\"id\": 32, \"action\": \"read\"}", RESULT_DONE, "all said");
}

static void what_is_no_question_is_refused(void **state)
{
	struct ask ask;

	(void)state;
	assert_false(ask_parse(STR("no"), &ask, NULL));
	assert_false(ask_parse(STR("{}"), &ask, NULL));
	assert_false(ask_parse(STR("{\"job\":0}"), &ask, NULL));
	assert_true(ask_parse(STR("{\"job\":7,\"input\":\"a\\u0000b\",\"signal\":15}"),
			      &ask, NULL));
	assert_int_equal(ask.job, 7);
	assert_int_equal(ask.input.size, 3);
	assert_int_equal(ask.signal, 15);
	ask_fini(&ask);
}

#define IN_SESSION(test) cmocka_unit_test_setup_teardown(test, open_session, room_end)

int main(int argc, char **argv)
{
	const struct CMUnitTest cases[] = {
		IN_SESSION(any_call_can_become_a_job_and_its_caller_is_answered),
		IN_SESSION(a_call_that_outlasts_its_callers_patience_becomes_one),
		IN_SESSION(a_worker_is_asked_and_its_answer_is_the_calls),
		IN_SESSION(a_worker_that_dies_ends_its_job_and_says_so),
		IN_SESSION(a_worker_that_never_answers_is_not_waited_for),
		IN_SESSION(a_cancel_ends_calls_and_leaves_jobs),
		IN_SESSION(a_cancel_ends_a_job_that_nobody_was_told_of),
		IN_SESSION(so_many_run_and_one_more_stays_an_ordinary_call),
		IN_SESSION(of_those_that_ended_the_newest_stay),
		cmocka_unit_test(what_is_no_question_is_refused),
	};

	session_role(argc, argv, tools);
	return cmocka_run_group_tests(cases, NULL, NULL);
}
