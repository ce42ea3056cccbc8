/*
 * Tests of tools that are carried out elsewhere: answered at once or later, cancelled, too late,
 * with words in between. The session has a real cell, which none of this uses.
 */
#include "../base/unit.h"
#include "room.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "process/loop.h"
#include "session/session.h"
#include "tool/event.h"

struct kept {
	struct room room;
	struct buf events;
	bool at_once;
	struct running *running;
	struct timer answer;
	size_t stopped;
};

static void give(struct running *running, const char *text)
{
	struct tool_result result;

	tool_result_init(&result);
	(void)buf_adds(&result.text, text);
	(void)tool_done(&result);
	running_end(running, &result);
}

static void answer_due(struct timer *timer)
{
	struct kept *keeper = timer->context;

	loop_remove_timer(timer);
	running_progress(keeper->running, 1, -1, "nearly");
	running_log(keeper->running, "shout", "them", STR("hear"));
	give(keeper->running, "later");
}

static void begin(void *context, struct running *running)
{
	struct kept *keeper = context;

	keeper->running = running;
	if (keeper->at_once)
		give(running, value_text(value_member(running_arguments(running), "word")));
}

static void stop(void *context, struct running *running)
{
	struct kept *keeper = context;

	assert_ptr_equal(running, keeper->running);
	keeper->running = NULL;
	keeper->stopped++;
}

static const struct row far_params[] = {
	{"word", ROW_TEXT, true, "To be said"},
	{0},
};
static struct tool far_tool = {.name = "far",
			       .description = "Far away.",
			       .params = far_params,
			       .effects = EFFECT_RUNS,
			       .timeout_s = 20,
			       .where = ELSEWHERE,
			       .begin = begin,
			       .stop = stop};
static const struct tool *const table[] = {&far_tool, NULL};

static bool note_event(void *context, const struct event *event, struct err *err)
{
	struct kept *keeper = context;

	(void)err;
	(void)buf_addf(&keeper->events, "%s %.*s ", event_kind_name(event->kind),
		       (int)event->text.size,
		       event->text.data != NULL ? event->text.data : "");
	if (event->kind == EVENT_PROGRESS || event->kind == EVENT_LOG)
		(void)value_print(event->data, VALUE_SORTED, &keeper->events);
	(void)buf_addc(&keeper->events, '\n');
	return true;
}

static int open_session(void **state)
{
	struct kept *keeper = *state = memory_alloc(sizeof(*keeper));

	buf_init(&keeper->events, 1 << 16);
	far_tool.keeper = keeper;
	far_tool.timeout_s = 20;
	if (!room_make(&keeper->room))
		return -1;
	const struct session_options options = {
		.take_policy = room_policy(keeper->room.folder),
		.tools = table,
		.sink = {note_event, keeper},
	};
	return room_open(&keeper->room, options) ? 0 : -1;
}

static int close_session(void **state)
{
	struct kept *keeper = *state;

	room_close(&keeper->room);
	buf_fini(&keeper->events);
	free(keeper);
	return 0;
}

static struct running *start(const struct kept *keeper)
{
	const struct request request = {.tool = "far",
					.arguments_text = STR("{\"word\": \"now\"}")};

	return session_start(keeper->room.session, &request, NULL, NULL);
}

static void it_may_answer_at_once(void **state)
{
	struct kept *keeper = *state;

	keeper->at_once = true;
	struct running *running = start(keeper);
	assert_true(running_is_done(running));
	assert_int_equal(running_result(running)->status, RESULT_DONE);
	assert_string_equal(running_result(running)->text.data, "now");
	running_free(running);
	assert_int_equal(keeper->stopped, 0);
}

static void it_may_answer_later_with_words_before(void **state)
{
	struct kept *keeper = *state;
	struct running *running = start(keeper);

	assert_false(running_is_done(running));
	keeper->answer = (struct timer){.due_ms = clock_now_ms() + 1,
					.due = answer_due,
					.context = keeper};
	loop_add_timer(session_loop(keeper->room.session), &keeper->answer);
	assert_string_equal(room_finish(&keeper->room, running)->text.data, "later");
	running_free(running);
	assert_string_equal(keeper->events.data,
			    "tool_began  \n"
			    "progress nearly {\"progress\":1.0}\n"
			    "log hear {\"level\":\"info\",\"logger\":\"them\"}\n"
			    "tool_ended  \n");
}

static void a_cancel_ends_it_and_is_told(void **state)
{
	struct kept *keeper = *state;
	struct running *running = start(keeper);

	running_cancel(running);
	assert_int_equal(running_result(running)->status, RESULT_CANCELLED);
	assert_int_equal(keeper->stopped, 1);
	running_cancel(running);
	assert_int_equal(keeper->stopped, 1);
	running_free(running);
}

static void a_caller_that_goes_ends_it(void **state)
{
	struct kept *keeper = *state;

	running_free(start(keeper));
	assert_int_equal(keeper->stopped, 1);
}

static void its_time_ends_it(void **state)
{
	struct kept *keeper = *state;

	far_tool.timeout_s = 0.01;
	struct running *running = start(keeper);
	assert_int_equal(room_finish(&keeper->room, running)->status, RESULT_TIMED_OUT);
	assert_non_null(strstr(running_result(running)->text.data,
			       "far has not answered in 0.01 s"));
	assert_int_equal(keeper->stopped, 1);
	running_free(running);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_may_answer_at_once, open_session,
						close_session),
		cmocka_unit_test_setup_teardown(it_may_answer_later_with_words_before,
						open_session, close_session),
		cmocka_unit_test_setup_teardown(a_cancel_ends_it_and_is_told,
						open_session, close_session),
		cmocka_unit_test_setup_teardown(a_caller_that_goes_ends_it, open_session,
						close_session),
		cmocka_unit_test_setup_teardown(its_time_ends_it, open_session,
						close_session),
	};

	session_role(argc, argv, table);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
