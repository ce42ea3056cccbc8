/*
 * Tests of tools that are made while the program runs: a foreign schema, a carrier in the
 * worker, what it tells and asks meanwhile, and what is shown for it. With a real cell.
 */
#include "../base/unit.h"
#include "room.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "process/frame.h"
#include "session/session.h"
#include "tool/call.h"
#include "tool/event.h"
#include "view/shape.h"

/* Where the shown file lies in the view; nothing is there on the host. */
#define SHOWN_AT "/opt-of-this-test/plugin.txt"

static enum result_status tell_all(struct call *call, struct tool_result *result)
{
	call_progress(call, 1, 4, "first");
	call_progress(call, 2.5, -1, NULL);
	call_log(call, "warning", "here", STR("a word"));
	call_log(call, "no such level", NULL, STR("another"));
	return tool_done(result);
}

/* Ask and wait. False: it was not asked, or the call has to end. */
static bool question(struct call *call, const char *kind, const struct value *request,
		     struct value **answer)
{
	struct pollfd control = {.fd = call->control_fd, .events = POLLIN};
	struct value *reply = NULL;

	if (!call_ask(call, kind, request))
		return false;
	while (reply == NULL && !call->cancelled && clock_now_ms() < call->deadline_ms) {
		(void)poll(&control, 1, clock_poll_timeout(call->deadline_ms));
		reply = call_take_reply(call);
	}
	if (reply != NULL)
		*answer = reply;
	return reply != NULL;
}

static enum result_status ask_somebody(struct call *call, struct tool_result *result)
{
	auto_value struct value *request = value_new_object();
	auto_value struct value *answer = NULL;

	value_set_text(request, "message", "May I?");
	if (!question(call, "form", request, &answer))
		return call_stop_result(call, result);
	(void)value_print(answer, 0, &result->text);
	return tool_done(result);
}

static enum result_status give_content(struct call *call, struct tool_result *result)
{
	struct value *item = value_new_object();

	(void)call;
	value_set_text(item, "type", "image");
	value_set_text(item, "data", "AAAA");
	(void)buf_adds(&result->text, tool_add_content(result, item) ? "kept" : "lost");
	return tool_done(result);
}

static enum result_status read_shown(struct call *call, struct tool_result *result)
{
	auto_close int fd = open(SHOWN_AT, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || !fd_read_all(fd, &result->text, "it", NULL))
		return tool_fail(result, "not there");
	if (open(SHOWN_AT, O_WRONLY | O_CLOEXEC) >= 0 || unlink(SHOWN_AT) == 0)
		return tool_fail(result, "writable");
	(void)buf_adds(&result->text, call->has_view ? "in a view" : "without one");
	return tool_done(result);
}

/* A worker that was taken over: questions without end, answers to nothing. */
static enum result_status rave(struct call *call, struct tool_result *result)
{
	static const char *const payloads[] = {
		"",
		"{",
		"[]",
		"{\"id\":1}",
		"{\"id\":-1,\"kind\":\"form\",\"request\":{}}",
		"{\"id\":1,\"kind\":\"magic\",\"request\":{}}",
		"{\"progress\":\"1\"}",
		"{\"progress\":null,\"level\":7,\"text\":[]}"};

	for (size_t i = 0; i < UNIT_COUNT(payloads); i++) {
		(void)frame_send(call->control_fd, FRAME_QUESTION, str_of(payloads[i]),
				 NULL, 0, call->deadline_ms, NULL);
		(void)frame_send(call->control_fd, FRAME_TELL, str_of(payloads[i]), NULL,
				 0, call->deadline_ms, NULL);
		(void)frame_send(call->control_fd, FRAME_REPLY, str_of(payloads[i]), NULL,
				 0, call->deadline_ms, NULL);
	}
	return tool_done(result);
}

static enum result_status carry(struct call *call, struct tool_result *result)
{
	static const struct {
		const char *name;
		enum result_status (*act)(struct call *call, struct tool_result *result);
	} acts[] = {{"tell", tell_all},
		    {"ask", ask_somebody},
		    {"content", give_content},
		    {"shown", read_shown},
		    {"rave", rave}};
	const char *act = value_text(value_member(call->carried, "act"));

	for (size_t i = 0; act != NULL && i < UNIT_COUNT(acts); i++) {
		if (strcmp(acts[i].name, act) == 0)
			return acts[i].act(call, result);
	}
	(void)value_print(call->arguments, VALUE_SORTED, &result->text);
	return tool_done(result);
}

static const struct row no_params[] = {{0}};
static const struct tool carry_tool = {.name = "carry",
				       .description = "Carry out.",
				       .params = no_params,
				       .effects = EFFECT_RUNS,
				       .timeout_s = 30,
				       .internal = true,
				       .execute = carry};
static const struct tool *const table[] = {&carry_tool, NULL};

struct fixture {
	struct room room;
	struct tool made;
	const struct tool *tools[3];
	char source[96];
	struct buf events;
	struct running *running; /* whose question is answered */
	bool answers;
};

static bool note_event(void *context, const struct event *event, struct err *err)
{
	struct fixture *fixture = context;
	auto_value struct value *answer = value_new_object();

	if (event->kind == EVENT_TOOL_BEGAN || event->kind == EVENT_TOOL_ENDED)
		return true;
	(void)buf_addf(&fixture->events, "%s %.*s ", event_kind_name(event->kind),
		       (int)event->text.size,
		       event->text.data != NULL ? event->text.data : "");
	(void)value_print(event->data, VALUE_SORTED, &fixture->events);
	(void)buf_addc(&fixture->events, '\n');
	if (event->kind != EVENT_QUESTION || fixture->running == NULL)
		return true;
	const int64_t id = value_integer(value_member(event->data, "id"));
	value_set_text(answer, "action", "perhaps");
	assert_false(running_answer(fixture->running, id, answer, err));
	value_set_text(answer, "action", "accept");
	assert_false(running_answer(fixture->running, id + 1, answer, err));
	assert_true(running_answer(fixture->running, id, answer, err));
	assert_false(running_answer(fixture->running, id, answer, err));
	return true;
}

static struct value *parsed(const char *text)
{
	struct value *value = NULL;

	assert_true(value_parse(str_of(text), 0, &value, NULL));
	return value;
}

static const char schema_text[] =
	"{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"},"
	"\"loud\":{\"type\":\"boolean\",\"default\":false},"
	"\"word\":{\"type\":[\"string\",\"null\"]},\"x-kept\":{}},"
	"\"required\":[\"n\",\"loud\"],\"additionalProperties\":false}";

static bool open_with(struct fixture *fixture, bool answers)
{
	if (!room_make(&fixture->room))
		return false;
	(void)snprintf(fixture->source, sizeof(fixture->source), "%s/source",
		       fixture->room.folder);
	/* As a umask of 077 makes it: in root's cell it is shown to another user. */
	auto_close int fd = open(fixture->source, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "copy ", 5) != 5)
		return false;
	buf_init(&fixture->events, 1 << 16);
	fixture->made = (struct tool){.name = "made",
				      .description = "Made at run time.",
				      .schema = parsed(schema_text),
				      .carrier = "carry",
				      .carried = value_new_object(),
				      .effects = EFFECT_RUNS,
				      .timeout_s = 30};
	fixture->tools[0] = &carry_tool;
	fixture->tools[1] = &fixture->made;
	const struct shape_shown shown[] = {{fixture->source, SHOWN_AT, "a plugin"}, {0}};
	const struct session_options options = {
		.take_policy = room_policy(fixture->room.folder),
		.tools = fixture->tools,
		.sink = {note_event, fixture},
		.shown = shown,
		.answers_questions = answers,
		.ready_workers = 1,
	};
	return room_open(&fixture->room, options);
}

static int open_session(void **state)
{
	*state = memory_alloc(sizeof(struct fixture));
	return open_with(*state, true) ? 0 : -1;
}

static int open_silent_session(void **state)
{
	*state = memory_alloc(sizeof(struct fixture));
	return open_with(*state, false) ? 0 : -1;
}

static int close_session(void **state)
{
	struct fixture *fixture = *state;

	(void)unlink(fixture->source);
	room_close(&fixture->room);
	value_free((struct value *)(uintptr_t)fixture->made.schema);
	value_free(fixture->made.carried);
	buf_fini(&fixture->events);
	free(fixture);
	return 0;
}

static void act(struct fixture *fixture, const char *name, struct tool_result *result)
{
	value_set_text(fixture->made.carried, "act", name);
	const struct request request = {.tool = "made", .arguments_text = STR("{\"n\": 1}")};
	fixture->running = NULL;
	struct running *running =
		session_start(fixture->room.session, &request, NULL, NULL);
	fixture->running = running;
	(void)room_finish(&fixture->room, running);
	*result = *running_result(running);
	tool_result_init((struct tool_result *)(uintptr_t)running_result(running));
	fixture->running = NULL;
	running_free(running);
}

static void the_carrier_gets_arguments_that_fit_the_foreign_schema(void **state)
{
	struct fixture *fixture = *state;
	struct tool_result result;

	room_call(&fixture->room, "made", "{\"n\": 3, \"loud\": null, \"word\": null}",
		  &result);
	assert_int_equal(result.status, RESULT_DONE);
	/* What is required and has a default is filled in; a null that may be one stays. */
	assert_string_equal(result.text.data, "{\"loud\":false,\"n\":3,\"word\":null}");
	tool_result_fini(&result);
}

static void what_does_not_fit_the_foreign_schema_never_runs(void **state)
{
	static const struct {
		const char *arguments, *wanted;
	} rows[] = {
		{"{}", "\"n\""},
		{"{\"n\": \"3\"}", "integer"},
		{"{\"n\": 3, \"more\": 1}", "more"},
		{"[]", "object"},
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct tool_result result;
		room_call(&fixture->room, "made", rows[i].arguments, &result);
		assert_int_equal(result.status, RESULT_FAILED);
		assert_non_null(strstr(result.text.data, rows[i].wanted));
		tool_result_fini(&result);
	}
}

static void only_the_front_may_bring_a_tool_of_its_own(void **state)
{
	struct fixture *fixture = *state;
	auto_value struct value *carried = parsed("{\"act\":\"content\"}");
	auto_value struct value *schema = parsed("{}");
	const struct tool made = {.name = "brought",
				  .schema = schema,
				  .carrier = "carry",
				  .carried = carried,
				  .effects = EFFECT_RUNS,
				  .timeout_s = 30,
				  .internal = true};
	struct request request = {.tool = "brought",
				  .made = &made,
				  .arguments_text = STR("{}")};
	struct tool_result result;

	session_call(fixture->room.session, &request, &result);
	assert_int_equal(result.status, RESULT_FAILED);
	assert_non_null(strstr(result.text.data, "There is no tool"));
	tool_result_fini(&result);
	request.by_front = true;
	session_call(fixture->room.session, &request, &result);
	assert_int_equal(result.status, RESULT_DONE);
	tool_result_fini(&result);
}

static void content_comes_back_beside_the_text(void **state)
{
	struct tool_result result;

	act(*state, "content", &result);
	assert_string_equal(result.text.data, "kept");
	auto_value struct value *whole = tool_result_value(&result);
	const struct value *item = value_item(value_member(whole, "content"), 0);
	assert_string_equal(value_text(value_member(item, "data")), "AAAA");
	/* It may be megabytes: it is there once. */
	assert_ptr_equal(value_member(whole, "content"), result.content);
	tool_result_fini(&result);
}

static void progress_and_log_are_events_that_were_checked(void **state)
{
	struct fixture *fixture = *state;
	struct tool_result result;

	act(fixture, "tell", &result);
	assert_string_equal(fixture->events.data,
			    "progress first {\"progress\":1.0,\"total\":4.0}\n"
			    "progress  {\"progress\":2.5}\n"
			    "log a word {\"level\":\"warning\",\"logger\":\"here\"}\n"
			    "log another {\"level\":\"info\"}\n");
	tool_result_fini(&result);
}

static void a_question_is_answered_once(void **state)
{
	struct fixture *fixture = *state;
	struct tool_result result;

	act(fixture, "ask", &result);
	assert_int_equal(result.status, RESULT_DONE);
	assert_string_equal(result.text.data, "{\"action\":\"accept\"}");
	assert_string_equal(fixture->events.data,
			    "question  {\"id\":1,\"kind\":\"form\",\"request\":{\"message\":"
			    "\"May I?\"}}\n");
	tool_result_fini(&result);
}

static void without_somebody_who_answers_it_is_declined(void **state)
{
	struct fixture *fixture = *state;
	struct tool_result result;

	act(fixture, "ask", &result);
	assert_int_equal(result.status, RESULT_DONE);
	assert_string_equal(result.text.data, "{\"action\":\"decline\"}");
	assert_int_equal(fixture->events.size, 0);
	tool_result_fini(&result);
}

static void a_call_that_waits_for_an_answer_can_be_cancelled(void **state)
{
	struct fixture *fixture = *state;
	const struct request request = {.tool = "made", .arguments_text = STR("{\"n\": 1}")};
	struct err err;

	value_set_text(fixture->made.carried, "act", "ask");
	struct running *running =
		session_start(fixture->room.session, &request, NULL, NULL);
	while (fixture->events.size == 0)
		loop_turn(session_loop(fixture->room.session), CLOCK_NEVER);
	running_cancel(running);
	assert_int_equal(room_finish(&fixture->room, running)->status, RESULT_CANCELLED);
	auto_value struct value *answer = parsed("{\"action\":\"accept\"}");
	assert_false(running_answer(running, 1, answer, &err));
	running_free(running);
}

static void a_worker_that_raves_harms_nobody(void **state)
{
	struct fixture *fixture = *state;
	struct tool_result result;

	act(fixture, "rave", &result);
	assert_int_equal(result.status, RESULT_DONE);
	assert_null(strstr(fixture->events.data, "question"));
	tool_result_fini(&result);
}

static void what_is_shown_lies_at_its_path_and_is_read_only(void **state)
{
	struct tool_result result;

	act(*state, "shown", &result);
	assert_string_equal(result.text.data, "copy in a view");
	tool_result_fini(&result);
}

static void nothing_is_shown_over_what_a_cell_stands_on(void **state)
{
	static const char *const places[] = {"/", "/usr", "/proc/self", "/tmp", "/dev/null"};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < UNIT_COUNT(places); i++) {
		const struct shape_shown shown[] = {{fixture->source, places[i], NULL}, {0}};
		const struct session_options options = {
			.workspace = fixture->room.folder,
			.take_policy = policy_new("test", fixture->room.folder),
			.tools = fixture->tools,
			.shown = shown,
			.cancel_fd = -1};
		struct session *session = NULL;
		struct err err = {0};
		assert_false(session_open(&options, &session, &err));
		assert_non_null(strstr(err.text, places[i]));
	}
}

/* At /usr nothing can be shown, so a session that opens has left it out. */
static void what_must_be_exact_is_not_shown_through_a_link(void **state)
{
	struct fixture *fixture = *state;
	char link[sizeof(fixture->source) + 8];

	(void)snprintf(link, sizeof(link), "%s.link", fixture->source);
	assert_int_equal(symlink(fixture->source, link), 0);
	for (int exact = 0; exact < 2; exact++) {
		const struct shape_shown shown[] = {
			{.source = link, .path = "/usr", .exact = exact != 0}, {0}};
		const struct session_options options = {
			.workspace = fixture->room.folder,
			.take_policy = policy_new("test", fixture->room.folder),
			.tools = fixture->tools,
			.shown = shown,
			.cancel_fd = -1};
		struct session *session = NULL;
		struct err err = {0};

		assert_int_equal(session_open(&options, &session, &err), exact != 0);
		session_close(session);
	}
	assert_int_equal(unlink(link), 0);
}

#define IN_SESSION(test) \
	cmocka_unit_test_setup_teardown(test, open_session, close_session)

int main(int argc, char **argv)
{
	const struct CMUnitTest cases[] = {
		IN_SESSION(the_carrier_gets_arguments_that_fit_the_foreign_schema),
		IN_SESSION(what_does_not_fit_the_foreign_schema_never_runs),
		IN_SESSION(only_the_front_may_bring_a_tool_of_its_own),
		IN_SESSION(content_comes_back_beside_the_text),
		IN_SESSION(progress_and_log_are_events_that_were_checked),
		IN_SESSION(a_question_is_answered_once),
		cmocka_unit_test_setup_teardown(without_somebody_who_answers_it_is_declined,
						open_silent_session, close_session),
		IN_SESSION(a_call_that_waits_for_an_answer_can_be_cancelled),
		IN_SESSION(a_worker_that_raves_harms_nobody),
		IN_SESSION(what_is_shown_lies_at_its_path_and_is_read_only),
		IN_SESSION(nothing_is_shown_over_what_a_cell_stands_on),
		IN_SESSION(what_must_be_exact_is_not_shown_through_a_link),
	};

	session_role(argc, argv, table);
	return cmocka_run_group_tests(cases, NULL, NULL);
}
