/*
 * Tests of cell/outlet with a real cell and its proxy: what a command was granted ends
 * with it. This program is anchor, worker and proxy; the tools are outlet_tools.c.
 */
#include "../base/unit.h"
#include "outlet_tools.h"
#include "room.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "proxy/proxy.h"
#include "session/session.h"
#include "tool/denial.h"

/* A session with one listed host: a listener of this program. */
struct fixture {
	struct room room;
	char host[64], arguments[128];
	int server;
};

static bool make_server(struct fixture *fixture)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);

	fixture->server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(fixture->server, (struct sockaddr *)&address, size) < 0 ||
	    listen(fixture->server, 8) < 0 ||
	    getsockname(fixture->server, (struct sockaddr *)&address, &size) < 0)
		return false;
	(void)snprintf(fixture->host, sizeof(fixture->host), "127.0.0.1:%u",
		       ntohs(address.sin_port));
	(void)snprintf(fixture->arguments, sizeof(fixture->arguments),
		       "{\"host\": \"%s\"}", fixture->host);
	return true;
}

static int open_session(void **state)
{
	struct fixture *fixture = memory_alloc(sizeof(*fixture));
	struct err err = {0};

	if (!room_make(&fixture->room) || !make_server(fixture))
		return -1;
	struct policy *policy = policy_new("test", fixture->room.folder);
	if (!policy_add_network(policy, fixture->host, "test", &err))
		return -1;
	const struct session_options options = {
		.take_policy = policy,
		.tools = outlet_tools,
		.ready_workers = 2,
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
	fd_close(&fixture->server);
	free(fixture);
	return 0;
}

static void each_command_has_a_token_of_its_own_that_ends_with_it(void **state)
{
	struct fixture *fixture = *state;
	struct tool_result first, second;
	char arguments[256];

	room_call(&fixture->room, "ask", fixture->arguments, &first);
	assert_int_equal(first.status, RESULT_DONE);
	assert_string_equal(first.text.data + 41, " HTTP/1.1 200");
	(void)snprintf(arguments, sizeof(arguments),
		       "{\"host\": \"%s\", \"credentials\": \"%.41s\"}", fixture->host,
		       first.text.data);
	room_call(&fixture->room, "ask", arguments, &second);
	assert_string_equal(second.text.data + 41, " HTTP/1.1 407");
	assert_memory_not_equal(first.text.data, second.text.data, 41);
	assert_null(denial_list(&second));
	tool_result_fini(&first);
	tool_result_fini(&second);
}

static void a_connection_ends_with_the_command_that_opened_it(void **state)
{
	struct fixture *fixture = *state;
	const struct request taking = {.tool = "take", .arguments_text = STR("{}")};
	const struct request giving = {.tool = "give",
				       .arguments_text = str_of(fixture->arguments)};
	struct running *taker = session_start(fixture->room.session, &taking, NULL, NULL);
	struct running *giver = session_start(fixture->room.session, &giving, NULL, NULL);

	while (!running_is_done(taker) || !running_is_done(giver))
		loop_turn(session_loop(fixture->room.session), CLOCK_NEVER);
	assert_string_equal(running_result(giver)->text.data, "HTTP/1.1 200");
	assert_string_equal(running_result(taker)->text.data, "alive ended");
	running_free(taker);
	running_free(giver);
}

static void a_refusal_is_a_denial_of_the_call_that_asked(void **state)
{
	struct fixture *fixture = *state;
	struct tool_result result;

	room_call(&fixture->room, "ask", "{\"host\": \"a.example:8443\"}", &result);
	assert_string_equal(
		result.text.data + 41,
		" HTTP/1.1 403\n[refused: a.example:8443 (agents.test.network); add "
		"\"a.example:8443\" to network, or --allow-host a.example:8443]\n");
	assert_int_equal(value_count(denial_list(&result)), 1);
	tool_result_fini(&result);
}

#define IN_SESSION(test) \
	cmocka_unit_test_setup_teardown(test, open_session, close_session)

int main(int argc, char **argv)
{
	const struct CMUnitTest cases[] = {
		IN_SESSION(each_command_has_a_token_of_its_own_that_ends_with_it),
		IN_SESSION(a_connection_ends_with_the_command_that_opened_it),
		IN_SESSION(a_refusal_is_a_denial_of_the_call_that_asked),
	};

	session_role(argc, argv, outlet_tools);
	proxy_role(argc, argv);
	return cmocka_run_group_tests(cases, NULL, NULL);
}
