/*
 * Tests of session/running with a real cell: calls that one worker gets together stay calls of
 * their own, whatever becomes of the worker, or of one of them. The tools are of this file. One
 * processor means two workers for such calls; both are held until a queue stands behind them.
 */
#include "../base/unit.h"
#include "room.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "session/session.h"
#include "tool/call.h"

enum {
	PAUSE_US = 500,
	NAP_MS = 10,
	BEHIND = 3, /* as many calls stand behind the first of a batch */
};

/* Of this worker. */
static int64_t napped_ms;

/* Until a file of this name is there. */
static enum result_status hold(struct call *call, struct tool_result *result)
{
	while (access(call_text(call, "word"), F_OK) < 0 && !call_stopped(call))
		(void)usleep(PAUSE_US);
	return tool_done(result);
}

static enum result_status say(struct call *call, struct tool_result *result)
{
	if (call_stopped(call))
		return call_stop_result(call, result);
	(void)buf_adds(&result->text, call_text(call, "word"));
	return tool_done(result);
}

static enum result_status slow(struct call *call, struct tool_result *result)
{
	call_output(call, CALL_STDOUT, STR("here"));
	while (!call_stopped(call))
		(void)usleep(PAUSE_US);
	return call_stop_result(call, result);
}

static enum result_status stuck(struct call *call, struct tool_result *result)
{
	(void)call;
	while (pause() < 0)
		;
	return tool_done(result);
}

static enum result_status die(struct call *call, struct tool_result *result)
{
	(void)call;
	(void)result;
	_exit(9);
}

static enum result_status nap(struct call *call, struct tool_result *result)
{
	(void)call;
	(void)usleep(NAP_MS * 1000);
	napped_ms = clock_now_ms();
	return tool_done(result);
}

/* How long after the nap of the same worker this call may go on. */
static enum result_status left(struct call *call, struct tool_result *result)
{
	(void)buf_addf(&result->text, "%s",
		       napped_ms == 0 ? "another worker"
		       : call->deadline_ms - napped_ms >=
				       (int64_t)(call->tool->timeout_s * 1000)
			       ? "all of it"
			       : "less");
	return tool_done(result);
}

static const struct row params[] = {
	{"word", ROW_TEXT, false, "A word"},
	{0},
};
#define READER(name_, function, seconds)                                           \
	{                                                                          \
		.name = name_, .description = "For a test.", .example = "{}",      \
		.params = params, .effects = EFFECT_READS, .timeout_s = (seconds), \
		.execute = (function)                                              \
	}
static const struct tool hold_tool = READER("hold", hold, 60),
			 say_tool = READER("say", say, 60),
			 slow_tool = READER("slow", slow, 60),
			 brief_tool = READER("brief", slow, 0.01),
			 stuck_tool = READER("stuck", stuck, 0.01),
			 die_tool = READER("die", die, 60),
			 nap_tool = READER("nap", nap, 60),
			 left_tool = READER("left", left, 60);
static const struct tool *const tools[] = {&hold_tool,  &say_tool,   &slow_tool,
					   &brief_tool, &stuck_tool, &die_tool,
					   &nap_tool,   &left_tool,  NULL};

/* A session whose two workers are held, and the queue behind them. */
struct held {
	struct room room;
	struct running *holds[2];
	struct running *calls[1 + BEHIND];
};

static struct running *start(struct held *held, const char *tool, const char *word)
{
	char arguments[64];
	struct request request = {.tool = tool};

	(void)snprintf(arguments, sizeof(arguments), "{\"word\": \"%s\"}", word);
	request.arguments_text = str_of(arguments);
	return session_start(held->room.session, &request, NULL, NULL);
}

static void turn_until_sent(struct held *held, const struct running *running)
{
	while (!running_is_sent(running))
		loop_turn(session_loop(held->room.session), CLOCK_NEVER);
}

static int hold_both(void **state)
{
	static struct held held;

	held = (struct held){0};
	*state = &held;
	if (!room_make(&held.room))
		return -1;
	const struct session_options options = {
		.take_policy = room_policy(held.room.folder),
		.tools = tools,
		.ready_workers = 2,
	};
	if (!room_open(&held.room, options))
		return -1;
	held.holds[0] = start(&held, "hold", "first");
	held.holds[1] = start(&held, "hold", "second");
	turn_until_sent(&held, held.holds[0]);
	turn_until_sent(&held, held.holds[1]);
	return 0;
}

static int let_all_go(void **state)
{
	struct held *held = *state;

	for (size_t i = 0; i < 2; i++)
		running_free(held->holds[i]);
	for (size_t i = 0; i <= BEHIND; i++)
		running_free(held->calls[i]);
	room_close(&held->room);
	return 0;
}

static void open_gate(struct held *held, const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", held->room.folder, name);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
}

/* FIRST, and as many behind it as a batch has, in one worker. */
static void send_batch(struct held *held, const char *first, const char *then)
{
	static const char *const words[] = {"a", "b", "c"};

	held->calls[0] = start(held, first, "0");
	for (size_t i = 0; i < BEHIND; i++)
		held->calls[1 + i] = start(held, then, words[i]);
	open_gate(held, "first");
	turn_until_sent(held, held->calls[0]);
}

static void assert_says(struct held *held, size_t i, const char *wanted)
{
	const struct tool_result *result = room_finish(&held->room, held->calls[i]);

	assert_int_equal(result->status, RESULT_DONE);
	assert_string_equal(result->text.data, wanted);
}

static void assert_others_are_done(struct held *held)
{
	assert_says(held, 1, "a");
	assert_says(held, 2, "b");
	assert_says(held, 3, "c");
}

static void turn_until_told(struct held *held)
{
	while (strstr(held->room.events.data, "tool_output") == NULL)
		loop_turn(session_loop(held->room.session), CLOCK_NEVER);
}

static void each_caller_gets_its_own_answer(void **state)
{
	struct held *held = *state;

	send_batch(held, "say", "say");
	assert_says(held, 0, "0");
	assert_others_are_done(held);
}

/* What stands behind another call has all of its time when it begins. */
static void a_deadline_counts_from_the_beginning(void **state)
{
	struct held *held = *state;

	send_batch(held, "nap", "left");
	for (size_t i = 1; i <= BEHIND; i++) {
		const struct tool_result *result = room_finish(&held->room, held->calls[i]);

		/* On a busy machine the nap was so long that others made these calls. */
		if (strcmp(result->text.data, "another worker") != 0)
			assert_string_equal(result->text.data, "all of it");
	}
}

static void a_worker_that_dies_takes_its_first_call_alone(void **state)
{
	struct held *held = *state;
	const struct tool_result *result;

	send_batch(held, "die", "say");
	result = room_finish(&held->room, held->calls[0]);
	assert_int_equal(result->status, RESULT_FAILED);
	assert_non_null(strstr(result->text.data, "ended before it answered"));
	assert_others_are_done(held);
}

static void the_first_is_cancelled_alone(void **state)
{
	struct held *held = *state;

	send_batch(held, "slow", "say");
	turn_until_told(held);
	running_cancel(held->calls[0]);
	assert_int_equal(room_finish(&held->room, held->calls[0])->status, RESULT_CANCELLED);
	assert_others_are_done(held);
}

static void one_behind_is_cancelled_at_once(void **state)
{
	struct held *held = *state;
	const struct tool_result *result;

	send_batch(held, "slow", "say");
	assert_false(running_is_sent(held->calls[2]));
	running_cancel(held->calls[2]);
	assert_true(running_is_done(held->calls[2]));
	result = running_result(held->calls[2]);
	assert_int_equal(result->status, RESULT_CANCELLED);
	assert_string_equal(result->text.data, "Cancelled before it began.");
	/* And nobody else. */
	open_gate(held, "second");
	assert_says(held, 1, "a");
	assert_says(held, 3, "c");
	assert_false(running_is_done(held->calls[0]));
}

/* No call waits for one that is slow while another worker is free. let_all_go ends that one. */
static void who_stands_behind_a_slow_one_goes_elsewhere(void **state)
{
	struct held *held = *state;

	send_batch(held, "slow", "say");
	open_gate(held, "second");
	assert_others_are_done(held);
	assert_false(running_is_done(held->calls[0]));
}

static void the_deadline_of_the_first_is_its_own(void **state)
{
	struct held *held = *state;

	send_batch(held, "brief", "say");
	assert_int_equal(room_finish(&held->room, held->calls[0])->status, RESULT_TIMED_OUT);
	assert_others_are_done(held);
}

static void a_worker_that_is_killed_takes_its_first_call_alone(void **state)
{
	struct held *held = *state;
	const struct tool_result *result;

	send_batch(held, "stuck", "say");
	result = room_finish(&held->room, held->calls[0]);
	assert_int_equal(result->status, RESULT_TIMED_OUT);
	assert_non_null(strstr(result->text.data, "ended by force"));
	assert_others_are_done(held);
}

static void all_can_be_given_up(void **state)
{
	struct held *held = *state;

	send_batch(held, "slow", "slow");
	turn_until_told(held);
	room_cancel(&held->room);
	for (size_t i = 0; i <= BEHIND; i++)
		assert_int_equal(room_finish(&held->room, held->calls[i])->status,
				 RESULT_CANCELLED);
}

#define HELD(test) cmocka_unit_test_setup_teardown(test, hold_both, let_all_go)

int main(int argc, char **argv)
{
	const struct CMUnitTest cases[] = {
		HELD(each_caller_gets_its_own_answer),
		HELD(a_deadline_counts_from_the_beginning),
		HELD(a_worker_that_dies_takes_its_first_call_alone),
		HELD(the_first_is_cancelled_alone),
		HELD(one_behind_is_cancelled_at_once),
		HELD(who_stands_behind_a_slow_one_goes_elsewhere),
		HELD(the_deadline_of_the_first_is_its_own),
		HELD(a_worker_that_is_killed_takes_its_first_call_alone),
		HELD(all_can_be_given_up),
	};
	cpu_set_t one;

	session_role(argc, argv, tools);
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0)
		return 1;
	return cmocka_run_group_tests(cases, NULL, NULL);
}
