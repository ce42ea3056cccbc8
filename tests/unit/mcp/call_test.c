/*
 * Tests of mcp/server/call: the questions of a call whose time is over. Calls are those of a
 * session with a real cell; the test is the tool, and says what the session says after 300 s.
 */
#include "../base/unit.h"
#include "../session/room.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "mcp/message.h"
#include "mcp/server/mcp.h"
#include "process/loop.h"
#include "session/session.h"
#include "tool/event.h"

#define LEGACY "{\"elicitation\":{}},\"protocolVersion\":\"2025-11-25\"}"
#define META                                                                     \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"," \
	"\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}}"

struct talk {
	struct mcp_way way; /* the first member */
	struct loop *loop;
	struct room room;
	struct tool tool;
	const struct tool *table[2];
	struct mcp *mcp;
	struct mcp_peer *peer;
	struct running *running; /* the call of the tool */
	struct buf sent;         /* the last messages of the server, one a line */
	struct buf answered;     /* what the tool was answered */
	char state[256];         /* the last requestState */
};

static void note_message(struct mcp_way *way, struct buf *message, bool last, int status)
{
	struct talk *talk = (struct talk *)way;
	const char *at = strstr(message->data, "\"requestState\":\"");

	(void)last;
	(void)status;
	(void)buf_addstr(&talk->sent, buf_str(message));
	(void)buf_addc(&talk->sent, '\n');
	if (at != NULL)
		(void)sscanf(at + strlen("\"requestState\":\""), "%255[^\"]", talk->state);
}

static void note_drop(struct mcp_way *way)
{
	(void)way;
}

static void begin(void *keeper, struct running *running)
{
	struct talk *talk = keeper;

	talk->running = running;
}

static void stop(void *keeper, struct running *running)
{
	(void)keeper;
	(void)running;
}

static void answered(void *keeper, struct running *running, const struct value *answer)
{
	struct talk *talk = keeper;

	(void)running;
	(void)value_print(answer, VALUE_SORTED, &talk->answered);
}

static bool open_session(void *context, struct loop *loop, struct event_sink sink,
			 struct session **session, struct err *err)
{
	struct talk *talk = context;
	const struct session_options options = {
		.take_policy = room_policy(talk->room.folder),
		.tools = talk->table,
		.sink = sink,
		.loop = loop,
		.answers_questions = true,
		.answers_approvals = true,
	};

	if (!room_open(&talk->room, options))
		return err_set(err, EINVAL, "no room");
	*session = talk->room.session;
	talk->room.session = NULL; /* the server's from now on */
	return true;
}

static int open_talk(void **state)
{
	struct talk *talk = *state = memory_alloc(sizeof(*talk));
	static const struct row params[] = {{0}};

	talk->way = (struct mcp_way){note_message, note_drop, NULL};
	buf_init(&talk->sent, 1 << 20);
	buf_init(&talk->answered, 1 << 20);
	talk->tool = (struct tool){.name = "asks",
				   .description = "Asks.",
				   .params = params,
				   .effects = EFFECT_RUNS,
				   .timeout_s = 100,
				   .where = ELSEWHERE,
				   .begin = begin,
				   .stop = stop,
				   .answered = answered,
				   .keeper = talk};
	talk->table[0] = &talk->tool;
	talk->loop = loop_new();
	if (!room_make(&talk->room))
		return -1;
	const struct mcp_options options = {.loop = talk->loop,
					    .open = open_session,
					    .context = talk,
					    .version = "1",
					    .instructions = ""};
	talk->mcp = mcp_new(&options);
	talk->peer = mcp_peer_new(talk->mcp, &talk->way, NULL);
	return 0;
}

static int close_talk(void **state)
{
	struct talk *talk = *state;

	mcp_peer_free(talk->peer);
	mcp_free(talk->mcp);
	room_close(&talk->room);
	loop_free(talk->loop);
	buf_fini(&talk->sent);
	buf_fini(&talk->answered);
	free(talk);
	return 0;
}

/* The client says TEXT, and `sent` is what the server says then. */
static void say(struct talk *talk, const char *text)
{
	struct mcp_message message;
	struct err err = {0};

	buf_clear(&talk->sent);
	if (!mcp_message_read(str_of(text), &message, &err))
		fail_msg("%s: %s", text, err.text);
	(void)mcp_take(talk->peer, &talk->way, &message, MCP_AS_AGREED);
	mcp_message_fini(&message);
}

static void assert_said(const struct talk *talk, const char *words)
{
	if (strstr(talk->sent.data, words) == NULL)
		fail_msg("no %s in: %s", words, talk->sent.data);
}

static void assert_nothing_said(const struct talk *talk)
{
	if (talk->sent.size > 0)
		fail_msg("said: %s", talk->sent.data);
}

/* The session says of the call m1: an event of KIND with the data TEXT. */
static void happen(struct talk *talk, enum event_kind kind, const char *text)
{
	struct value *data = NULL;
	const struct event_sink sink = mcp_calls_sink(talk->mcp);

	buf_clear(&talk->sent);
	assert_true(value_parse(str_of(text), 0, &data, NULL));
	assert_true(sink.event(sink.context,
			       &(struct event){.kind = kind, .call = "m1", .data = data},
			       NULL));
	value_free(data);
}

static void want_approval(struct talk *talk, int id)
{
	char text[256];

	(void)snprintf(text, sizeof(text),
		       "{\"id\":%d,\"hash\":\"h%d\",\"kind\":\"form\",\"request\":{\"key\":\"leave\","
		       "\"message\":\"May it, %d?\"}}",
		       id, id, id);
	happen(talk, EVENT_APPROVAL_WANTED, text);
}

static void end_time(struct talk *talk, int id)
{
	char text[64];

	(void)snprintf(text, sizeof(text),
		       "{\"id\":%d,\"answer\":\"no\",\"by\":\"time\"}", id);
	happen(talk, EVENT_APPROVAL_GIVEN, text);
}

static void ask_form(struct talk *talk)
{
	auto_value struct value *request = NULL;

	buf_clear(&talk->sent);
	assert_true(value_parse(STR("{\"message\":\"Name?\"}"), 0, &request, NULL));
	assert_true(running_ask(talk->running, "form", request));
}

static void end_call(struct talk *talk)
{
	struct tool_result result;

	buf_clear(&talk->sent);
	tool_result_init(&result);
	(void)buf_adds(&result.text, "all done");
	(void)tool_done(&result);
	running_end(talk->running, &result);
	while (talk->sent.size == 0)
		loop_turn(talk->loop, CLOCK_NEVER);
	assert_said(talk, "all done");
}

/* Call the tool in the modern era, with the last state and ANSWERS unless it is NULL. */
static void call_modern(struct talk *talk, const char *id, const char *answers)
{
	char text[1024];

	(void)snprintf(text, sizeof(text),
		       "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"tools/call\",\"params\":{"
		       "\"name\":\"asks\"," META "%s%s%s%s%s}}",
		       id, answers != NULL ? ",\"inputResponses\":" : "",
		       answers != NULL ? answers : "",
		       answers != NULL ? ",\"requestState\":\"" : "",
		       answers != NULL ? talk->state : "", answers != NULL ? "\"" : "");
	say(talk, text);
}

static void the_next_question_is_asked_when_the_time_of_one_is_over(void **state)
{
	struct talk *talk = *state;

	say(talk, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
		  "\"params\":{\"capabilities\":" LEGACY "}");
	say(talk, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\","
		  "\"params\":{\"name\":\"asks\"}}");
	want_approval(talk, -1);
	assert_said(talk, "\"id\":\"q1.0\",\"method\":\"elicitation/create\"");
	end_time(talk, -1);
	assert_said(talk, "\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":"
			  "\"q1.0\"");
	ask_form(talk);
	assert_said(talk, "\"id\":\"q2.0\",\"method\":\"elicitation/create\"");
	say(talk,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"q1.0\",\"result\":{\"action\":\"decline\"}}");
	assert_int_equal(talk->answered.size, 0);
	say(talk,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"q2.0\",\"result\":{\"action\":\"cancel\"}}");
	assert_string_equal(talk->answered.data, "{\"action\":\"cancel\"}");
	end_call(talk);
}

static void a_parked_call_asks_the_next_question_when_its_client_comes_back(void **state)
{
	struct talk *talk = *state;

	call_modern(talk, "a", NULL);
	want_approval(talk, -1);
	assert_said(talk, "May it, -1?");
	end_time(talk, -1);
	want_approval(talk, -2);
	assert_nothing_said(talk);
	/* An answer to the first question is none to the second, which was not shown. */
	call_modern(talk, "b", "{\"leave\":{\"action\":\"accept\"}}");
	assert_said(talk, "May it, -2?");
	end_time(talk, -2);
	ask_form(talk);
	assert_nothing_said(talk);
	call_modern(talk, "c", "{}");
	assert_said(talk, "Name?");
	call_modern(talk, "d", "{\"question_3\":{\"action\":\"cancel\"}}");
	assert_string_equal(talk->answered.data, "{\"action\":\"cancel\"}");
	call_modern(talk, "e", "{}");
	assert_said(talk, "has been used");
	end_call(talk);
	assert_said(talk, "\"id\":\"d\"");
}

static void a_parked_call_goes_on_without_a_next_question(void **state)
{
	struct talk *talk = *state;

	call_modern(talk, "a", NULL);
	want_approval(talk, -1);
	end_time(talk, -1);
	assert_nothing_said(talk);
	call_modern(talk, "b", "{\"leave\":{\"action\":\"accept\"}}");
	assert_nothing_said(talk);
	end_call(talk);
	assert_said(talk, "\"id\":\"b\"");
}

int main(int argc, char **argv)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_talk, close_talk)
	const struct CMUnitTest tests[] = {
		CASE(the_next_question_is_asked_when_the_time_of_one_is_over),
		CASE(a_parked_call_asks_the_next_question_when_its_client_comes_back),
		CASE(a_parked_call_goes_on_without_a_next_question),
	};
	static const struct tool *const none[] = {NULL};

	session_role(argc, argv, none);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
