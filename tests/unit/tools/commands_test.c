/*
 * Tests of commands that run at the same time in one cell: what one serves on loopback,
 * in a socket or in /tmp the other reaches. This program is its own anchor and worker.
 */
#include "../base/unit.h"
#include "../session/room.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cell/cell.h"
#include "policy/commands.h"
#include "session/session.h"
#include "tools/tools.h"

static const struct tool *const tools[] = {&bash_tool, NULL};

static int open_with(void **state, const char *commands)
{
	struct room *room = memory_alloc(sizeof(*room));
	struct policy *policy;

	if (!room_make(room))
		return -1;
	policy = policy_new("test", room->folder);
	if (commands != NULL) {
		auto_value struct value *value = value_new_text(commands);
		policy->commands = commands_new(value);
	}
	const struct session_options options = {
		.take_policy = policy,
		.tools = tools,
		.ready_workers = 2,
		.cancel_fd = -1,
	};
	if (!room_open(room, options))
		return -1;
	*state = room;
	return 0;
}

static int open_session(void **state)
{
	return open_with(state, NULL);
}

static int open_listed(void **state)
{
	return open_with(state, "list");
}

static int close_session(void **state)
{
	struct room *room = *state;

	room_close(room);
	free(room);
	return 0;
}

static struct running *begin(const struct room *room, const char *command)
{
	auto_value struct value *arguments = value_new_object();

	value_set_text(arguments, "command", command);
	value_set_integer(arguments, "timeout_s", 60);
	const struct request request = {.tool = "bash", .arguments = arguments};
	return session_start(room->session, &request, NULL, NULL);
}

/* The server runs until it is cancelled; the client waits for it by asking again. */
static void assert_served(void **state, const char *server, const char *client)
{
	const struct room *room = *state;
	struct running *serving = begin(room, server);
	struct running *asking = begin(room, client);
	const struct tool_result *result = room_finish(room, asking);

	assert_int_equal(result->status, RESULT_DONE);
	assert_int_equal(result->exit_code, 0);
	assert_non_null(strstr(result->text.data, "served to all of this cell"));
	assert_false(running_is_done(serving));
	running_cancel(serving);
	assert_int_equal(room_finish(room, serving)->status, RESULT_CANCELLED);
	running_free(asking);
	running_free(serving);
}

static void a_server_on_loopback_answers_the_next_command(void **state)
{
	assert_served(state,
		      "mkdir /tmp/site && cd /tmp/site && echo served to all of this cell > a "
		      "&& exec python3 -m http.server --bind 127.0.0.1 8080",
		      "curl -sS --retry 200 --retry-delay 0 --retry-max-time 50 "
		      "--retry-all-errors http://127.0.0.1:8080/a");
}

static void a_database_on_loopback_answers_the_next_command(void **state)
{
	assert_served(state,
		      "exec -a redis-server redis-check-rdb --port 6379 --bind 127.0.0.1 "
		      "--save '' --dir /tmp",
		      "until redis-cli -e ping 2> /dev/null; do :; done; "
		      "redis-cli -e set said 'served to all of this cell' && redis-cli -e get "
		      "said");
}

static void a_socket_in_tmp_answers_the_next_command(void **state)
{
	assert_served(state,
		      "exec python3 -c '\nimport socket\n"
		      "s = socket.socket(socket.AF_UNIX)\ns.bind(\"/tmp/door\")\ns.listen()\n"
		      "while True:\n    c, _ = s.accept()\n"
		      "    c.sendall(b\"served to all of this cell\")\n    c.close()'",
		      "exec python3 -c '\nimport socket\nwhile True:\n"
		      "    s = socket.socket(socket.AF_UNIX)\n    try:\n"
		      "        s.connect(\"/tmp/door\")\n        break\n"
		      "    except OSError:\n        pass\nprint(s.recv(99).decode())'");
}

/* What one command started is gone with it, and none of it is the other's. */
static void the_end_of_one_command_is_not_the_other_s(void **state)
{
	const struct room *room = *state;
	struct running *waits =
		begin(room, "until test -e /tmp/end; do :; done; echo went on");
	struct running *ends =
		begin(room, "kill -9 -1 2> /dev/null; (sleep 60 &) ; echo ended");
	const struct tool_result *result = room_finish(room, ends);

	assert_int_equal(result->status, RESULT_DONE);
	struct running *says = begin(room, "touch /tmp/end");
	assert_int_equal(room_finish(room, says)->exit_code, 0);
	result = room_finish(room, waits);
	assert_non_null(strstr(result->text.data, "went on"));
	running_free(says);
	running_free(ends);
	running_free(waits);
}

/* Workers with a shell, there or asked for, after a call with ARGUMENTS. */
static size_t count_shells(const struct room *room, const char *arguments)
{
	const struct cell *cell = room->session->cell;
	struct tool_result result;
	size_t count;

	tool_result_init(&result);
	room_call(room, "bash", arguments, &result);
	assert_int_equal(result.status, RESULT_DONE);
	assert_int_equal(result.exit_code, 0);
	tool_result_fini(&result);
	count = cell->requested[true];
	for (const struct worker_end *at = cell->workers; at != NULL; at = at->next)
		count += at->prepared;
	return count;
}

static void shells_are_kept_ready_where_any_text_runs(void **state)
{
	assert_true(count_shells(*state, "{\"command\": \"echo a\"}") > 0);
}

static void no_shell_is_kept_ready_where_commands_are_listed(void **state)
{
	assert_int_equal(count_shells(*state, "{\"command\": \"echo a\"}"), 0);
	assert_int_equal(count_shells(*state, "{\"command\": \"echo b | cat\"}"), 0);
}

#define IN_SESSION(test) \
	cmocka_unit_test_setup_teardown(test, open_session, close_session)

int main(int argc, char **argv)
{
	const struct CMUnitTest cases[] = {
		IN_SESSION(a_server_on_loopback_answers_the_next_command),
		IN_SESSION(a_database_on_loopback_answers_the_next_command),
		IN_SESSION(a_socket_in_tmp_answers_the_next_command),
		IN_SESSION(the_end_of_one_command_is_not_the_other_s),
		IN_SESSION(shells_are_kept_ready_where_any_text_runs),
		cmocka_unit_test_setup_teardown(no_shell_is_kept_ready_where_commands_are_listed,
						open_listed, close_session),
	};

	session_role(argc, argv, tools);
	return cmocka_run_group_tests(cases, NULL, NULL);
}
