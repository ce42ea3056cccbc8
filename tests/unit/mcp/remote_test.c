/*
 * Tests of mcp/remote: the client's side beside a server of lines: both eras, lists, calls, and
 * servers that do as they please. Calls are those of a session with a real cell.
 */
#include "../base/unit.h"
#include "../session/room.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "mcp/client/remote.h"
#include "process/loop.h"
#include "session/session.h"
#include "tool/event.h"

struct server {
	struct loop *loop;
	struct room room;
	struct remote *remote;
	struct tool tool;
	const struct tool *table[2];
	struct buf sent;    /* all that came from the client */
	struct buf replies; /* that it has not been given yet */
	struct buf events;
	struct buf why; /* of its end, or "ready" */
	/* {METHOD: result, or {"error": …}}; one that is not there is not answered */
	struct value *script;
	bool silent;
};

static struct value *parsed(const char *text)
{
	struct value *value = NULL;
	struct err err = {0};

	if (!value_parse(str_of(text), 0, &value, &err))
		fail_msg("%s: %s", text, err.text);
	return value;
}

static void add_reply(struct server *server, const struct value *id, const struct value *said)
{
	auto_value struct value *reply = value_new_object();
	const struct value *error = value_member(said, "error");

	value_set_text(reply, "jsonrpc", "2.0");
	value_set(reply, "id", value_copy(id));
	if (error)
		value_set(reply, "error", value_copy(error));
	else
		value_set(reply, "result", value_copy(said));
	(void)value_print(reply, 0, &server->replies);
	(void)buf_addc(&server->replies, '\n');
}

static void send_line(void *context, struct str line)
{
	struct server *server = context;
	auto_value struct value *message = NULL;
	const struct value *said, *cursor;

	(void)buf_addstr(&server->sent, line);
	assert_true(line.data[line.size - 1] == '\n');
	assert_true(value_parse(line, 0, &message, NULL));
	said = value_member(server->script, value_text(value_member(message, "method")));
	cursor = value_member(value_member(message, "params"), "cursor");
	/* A list of answers is one for each page. */
	if (value_kind(said) == VALUE_ARRAY)
		said = value_item(said, cursor ? 1 : 0);
	if (said && value_member(message, "id") && !server->silent)
		add_reply(server, value_member(message, "id"), said);
}

static void settled(void *context, const char *why)
{
	struct server *server = context;

	buf_clear(&server->why);
	(void)buf_adds(&server->why, why ? why : "ready");
}

/* Give it what the server has said, until nobody says anything. */
static void pump(struct server *server)
{
	while (server->replies.size) {
		struct buf replies = server->replies;
		struct str rest = buf_str(&replies), line;

		buf_init(&server->replies, 1 << 20);
		while (str_next_line(&rest, &line))
			remote_line(server->remote, line);
		buf_fini(&replies);
	}
}

static bool note_event(void *context, const struct event *event, struct err *err)
{
	struct server *server = context;

	(void)err;
	if (event->kind != EVENT_PROGRESS && event->kind != EVENT_LOG)
		return true;
	(void)buf_addf(&server->events, "%s %.*s ", event_kind_name(event->kind),
		       (int)event->text.size, event->text.data ? event->text.data : "");
	(void)value_print(event->data, VALUE_SORTED, &server->events);
	(void)buf_addc(&server->events, '\n');
	return true;
}

static void begin(void *keeper, struct running *running)
{
	const struct server *server = keeper;

	remote_call(server->remote, REMOTE_TOOL, "their.name", running);
}

static void stop(void *keeper, struct running *running)
{
	const struct server *server = keeper;

	remote_stop(server->remote, running);
}

static int open_server(void **state)
{
	struct server *server = *state = memory_alloc(sizeof(*server));
	static const struct row params[] = {{"n", ROW_COUNT, false, "A number"}, {0}};

	buf_init(&server->sent, 1 << 20);
	buf_init(&server->replies, 1 << 20);
	buf_init(&server->events, 1 << 20);
	buf_init(&server->why, 1 << 12);
	server->tool = (struct tool){.name = "x_theirs",
				     .description = "Theirs.",
				     .params = params,
				     .effects = EFFECT_RUNS,
				     .timeout_s = 20,
				     .where = ELSEWHERE,
				     .begin = begin,
				     .stop = stop,
				     .keeper = server};
	server->table[0] = &server->tool;
	server->loop = loop_new();
	if (!room_make(&server->room))
		return -1;
	const struct session_options options = {
		.take_policy = room_policy(server->room.folder),
		.tools = server->table,
		.sink = {note_event, server},
		.loop = server->loop,
	};
	if (!room_open(&server->room, options))
		return -1;
	const struct remote_options remote = {.loop = server->loop,
					      .version = "1",
					      .send = send_line,
					      .settled = settled,
					      .context = server};
	server->remote = remote_new(&remote, "x");
	return 0;
}

static int close_server(void **state)
{
	struct server *server = *state;

	/* The session stops calls under way by the remote, and that has a timer in the loop. */
	room_close(&server->room);
	remote_free(server->remote);
	loop_free(server->loop);
	value_free(server->script);
	buf_fini(&server->sent);
	buf_fini(&server->replies);
	buf_fini(&server->events);
	buf_fini(&server->why);
	free(server);
	return 0;
}

static void play(struct server *server, const char *script)
{
	value_free(server->script);
	server->script = parsed(script);
	remote_begin(server->remote);
	pump(server);
}

#define NO_METHOD "{\"error\": {\"code\": -32601, \"message\": \"no\"}}"
#define LEGACY                                                                       \
	"\"server/discover\": " NO_METHOD ", \"initialize\": {\"protocolVersion\": " \
	"\"2025-06-18\", \"capabilities\": {\"tools\": {}}}, "
#define ONE_TOOL "\"tools/list\": {\"tools\": [{\"name\": \"a\"}]}"

static void the_newer_era_needs_no_handshake(void **state)
{
	struct server *server = *state;

	play(server,
	     "{\"server/discover\": {\"supportedVersions\": [\"2025-11-25\", "
	     "\"2026-07-28\"], \"capabilities\": {\"tools\": {}}},"
	     "\"tools/list\": [{\"tools\": [{\"name\": \"a\"}], \"nextCursor\": \"p2\"},"
	     "{\"tools\": [{\"name\": \"b\", \"x-kept\": [1]}]}]}");
	assert_string_equal(server->why.data, "ready");
	assert_true(remote_is_ready(server->remote));
	assert_null(strstr(server->sent.data, "\"initialize\""));
	/* Each of the three says who asks. */
	assert_non_null(strstr(server->sent.data, "\"cursor\":\"p2\",\"_meta\":{"
						  "\"io.modelcontextprotocol/protocolVersion\":"
						  "\"2026-07-28\""));
	const struct value *second = value_item(remote_tools(server->remote), 1);
	assert_string_equal(value_text(value_member(second, "name")), "b");
	assert_non_null(value_member(second, "x-kept"));
}

static void the_older_era_is_greeted(void **state)
{
	struct server *server = *state;

	play(server, "{" LEGACY ONE_TOOL "}");
	assert_string_equal(server->why.data, "ready");
	assert_non_null(strstr(server->sent.data,
			       "{\"method\":\"notifications/initialized\",\"jsonrpc\":\"2.0\"}\n"
			       "{\"id\":3,\"method\":\"tools/list\",\"params\":{},"));
}

static void without_tools_there_is_nothing_to_list(void **state)
{
	struct server *server = *state;

	play(server, "{\"server/discover\": " NO_METHOD ", \"initialize\": "
		     "{\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}}}");
	assert_string_equal(server->why.data, "ready");
	assert_int_equal(value_count(remote_tools(server->remote)), 0);
	assert_null(strstr(server->sent.data, "tools/list"));
}

static void servers_that_cannot_be_used_say_why(void **state)
{
	static const struct {
		const char *script, *why;
	} rows[] = {
		{"{\"server/discover\": {}, \"initialize\": {\"protocolVersion\": \"1999\\u0007\"}}",
		 "The MCP server x speaks a version of the protocol that is not known here: "
		 "1999\\x07."},
		{"{\"server/discover\": {}, \"initialize\": {\"error\": {\"message\": \"go away\"}}}",
		 "The MCP server x refuses: go away."},
		{"{" LEGACY "\"tools/list\": {}}",
		 "The MCP server x lists too many tools, or none in a way that is known."},
		{"{" LEGACY "\"tools/list\": {\"tools\": [], \"nextCursor\": \"same\"}}",
		 "The MCP server x lists its tools without an end."},
	};
	struct server *server = *state;

	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		play(server, rows[i].script);
		assert_string_equal(server->why.data, rows[i].why);
		assert_false(remote_is_ready(server->remote));
		remote_reset(server->remote);
	}
}

static void answer_is(struct server *server, const char *call, enum result_status status,
		      const char *text)
{
	struct tool_result result;
	const struct request request = {.tool = "x_theirs",
					.arguments_text = STR("{\"n\": 7}")};
	struct buf script;

	buf_init(&script, 1 << 16);
	(void)buf_addf(&script, "{\"tools/call\": %s}", call);
	value_free(server->script);
	server->script = parsed(script.data);
	buf_fini(&script);
	struct running *running = session_start(server->room.session, &request, NULL, NULL);
	pump(server);
	assert_true(running_is_done(running));
	result = *running_result(running);
	assert_int_equal(result.status, status);
	assert_string_equal(result.text.data, text);
	running_free(running);
}

static void answers_become_results(void **state)
{
	struct server *server = *state;

	play(server, "{" LEGACY ONE_TOOL "}");
	assert_false(remote_has_served(server->remote));
	answer_is(server,
		  "{\"content\": [{\"type\": \"text\", \"text\": \"one\\u001b[1m\"}, {\"type\": "
		  "\"text\", \"text\": \"two\"}], \"structuredContent\": {\"not\": 1}}",
		  RESULT_DONE, "one\ntwo");
	answer_is(server, "{\"content\": [], \"structuredContent\": {\"a\": [1]}}",
		  RESULT_DONE, "{\"a\":[1]}");
	answer_is(server,
		  "{\"content\": [{\"type\": \"text\", \"text\": \"no\"}], \"isError\": true}",
		  RESULT_FAILED, "no");
	answer_is(server, "{\"error\": {\"code\": -32602, \"message\": \"bad n\"}}",
		  RESULT_FAILED, "The MCP server x refused the call: bad n (code -32602)");
	answer_is(server, "{\"resultType\": \"input_required\"}", RESULT_FAILED,
		  "The MCP server x wants to ask something back: too often, what is not "
		  "offered to it, or where nobody can be asked.");
	answer_is(server, "{}", RESULT_DONE, "");
	answer_is(server, "{\"error\": 5}", RESULT_FAILED,
		  "The MCP server x refused the call: it gives no reason (code 0)");
	answer_is(server, "[[]]", RESULT_FAILED,
		  "The MCP server x answers in a form that is not known.");
	answer_is(server, "{\"content\": \"text\"}", RESULT_FAILED,
		  "The MCP server x answers in a form that is not known.");
	assert_true(remote_has_served(server->remote));
	assert_non_null(strstr(server->sent.data,
			       "\"params\":{\"_meta\":{\"progressToken\":4},\"name\":\"their.name\","
			       "\"arguments\":{\"n\":7}}"));
}

static void what_is_more_than_text_is_content(void **state)
{
	struct server *server = *state;
	const struct request request = {.tool = "x_theirs", .arguments_text = STR("{}")};

	play(server,
	     "{" LEGACY ONE_TOOL ", \"tools/call\": {\"content\": [{\"type\": \"image\", "
	     "\"data\": \"AAAA\", \"mimeType\": \"image/png\"}, 7, {}, "
	     "{\"type\": \"text\", \"text\": \"words\"}]}}");
	struct running *running = session_start(server->room.session, &request, NULL, NULL);
	pump(server);
	const struct tool_result *result = running_result(running);
	assert_int_equal(value_count(result->content), 1);
	assert_string_equal(result->text.data,
			    "words\n[items of the answer that are left out, too large or of no "
			    "known form: 2]\n");
	running_free(running);
}

static struct running *start_silent(struct server *server)
{
	const struct request request = {.tool = "x_theirs", .arguments_text = STR("{}")};

	server->silent = true;
	return session_start(server->room.session, &request, NULL, NULL);
}

static void progress_and_words_are_passed_on(void **state)
{
	struct server *server = *state;

	play(server, "{" LEGACY ONE_TOOL "}");
	struct running *running = start_silent(server);
	remote_line(
		server->remote,
		STR("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
		    "{\"progressToken\":4,\"progress\":1,\"total\":2,\"message\":\"half\"}}"));
	remote_line(server->remote,
		    STR("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":"
			"{\"level\":\"error\",\"data\":{\"a\":1}}}"));
	/* Of no call: dropped. */
	remote_line(server->remote,
		    STR("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
			"{\"progressToken\":\"4\",\"progress\":1}}"));
	assert_string_equal(server->events.data,
			    "progress half {\"progress\":1.0,\"total\":2.0}\n"
			    "log {\"a\":1} {\"level\":\"error\"}\n");
	running_free(running);
}

static void a_server_of_2025_03_26_may_answer_by_a_list(void **state)
{
	struct server *server = *state;

	play(server,
	     "{\"server/discover\": " NO_METHOD ", \"initialize\": {\"protocolVersion\": "
	     "\"2025-03-26\", \"capabilities\": {\"tools\": {}}}, " ONE_TOOL "}");
	assert_string_equal(server->why.data, "ready");
	struct running *running = start_silent(server);
	remote_line(server->remote,
		    STR(" [{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"},"
			"{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"content\":"
			"[{\"type\":\"text\",\"text\":\"there\"}]}}]"));
	assert_non_null(strstr(server->sent.data, "\"id\":9,\"result\":{}"));
	assert_true(running_is_done(running));
	assert_string_equal(running_result(running)->text.data, "there");
	running_free(running);
}

static void who_gives_up_tells_the_server_and_a_late_answer_is_nothing(void **state)
{
	struct server *server = *state;

	play(server, "{" LEGACY ONE_TOOL "}");
	struct running *running = start_silent(server);
	running_cancel(running);
	assert_int_equal(running_result(running)->status, RESULT_CANCELLED);
	running_free(running);
	assert_non_null(strstr(server->sent.data,
			       "{\"method\":\"notifications/cancelled\",\"params\":"
			       "{\"requestId\":4,"));
	remote_line(server->remote, STR("{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}"));
	assert_true(remote_is_ready(server->remote));
}

static void rubbish_is_dropped_until_it_is_too_much(void **state)
{
	static const char *const lines[] = {
		"",
		"starting up...",
		"{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":\"4\",\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":-4,\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":4}",
		"[[{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}],4]",
		"[]",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"sampling/createMessage\"}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/whatever\",\"params\":{}}",
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}",
	};
	struct server *server = *state;
	size_t rounds = 0;

	play(server, "{" LEGACY ONE_TOOL "}");
	struct running *running = start_silent(server);
	for (size_t i = 0; i < UNIT_COUNT(lines); i++)
		remote_line(server->remote, str_of(lines[i]));
	assert_false(running_is_done(running));
	assert_non_null(strstr(server->sent.data, "\"id\":7,\"error\":{\"code\":-32601"));
	for (; remote_is_ready(server->remote) && rounds < 10000; rounds++)
		remote_line(server->remote, STR("[[[[[[["));
	assert_in_range(rounds, 500, 2000);
	assert_string_equal(server->why.data,
			    "The MCP server x sends too much that is no message.");
	assert_int_equal(running_result(running)->status, RESULT_FAILED);
	assert_string_equal(running_result(running)->text.data, server->why.data);
	running_free(running);
}

static void a_call_of_one_that_is_started_anew_waits_for_it(void **state)
{
	struct server *server = *state;

	play(server, "{" LEGACY ONE_TOOL "}");
	struct running *lost = start_silent(server);
	remote_lost(server->remote, "It is gone.");
	assert_string_equal(running_result(lost)->text.data, "It is gone.");
	running_free(lost);
	remote_reset(server->remote);
	struct running *running = start_silent(server);
	assert_false(running_is_done(running));
	server->silent = false;
	play(server,
	     "{" LEGACY ONE_TOOL ", \"tools/call\": {\"content\": [{\"type\": \"text\", "
	     "\"text\": \"back\"}]}}");
	assert_string_equal(running_result(running)->text.data, "back");
	running_free(running);
}

int main(int argc, char **argv)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_server, close_server)
	const struct CMUnitTest tests[] = {
		CASE(the_newer_era_needs_no_handshake),
		CASE(the_older_era_is_greeted),
		CASE(without_tools_there_is_nothing_to_list),
		CASE(servers_that_cannot_be_used_say_why),
		CASE(answers_become_results),
		CASE(what_is_more_than_text_is_content),
		CASE(progress_and_words_are_passed_on),
		CASE(a_server_of_2025_03_26_may_answer_by_a_list),
		CASE(who_gives_up_tells_the_server_and_a_late_answer_is_nothing),
		CASE(rubbish_is_dropped_until_it_is_too_much),
		CASE(a_call_of_one_that_is_started_anew_waits_for_it),
	};
	static const struct tool *const none[] = {NULL};

	session_role(argc, argv, none);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
