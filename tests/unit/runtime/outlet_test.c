/*
 * Tests of runtime/outlet with a real cell and its proxy: what a command was granted ends
 * with it. This program is anchor, worker and proxy; the tools are small ones of this file.
 */
#include "../base/unit.h"
#include "room.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "proxy/proxy.h"
#include "runtime/call.h"
#include "runtime/denial.h"
#include "runtime/session.h"

enum { WAIT_MS = 5000, ANSWER_MAX = 512, CREDENTIALS = 42 };

/* ---- in the cell ---- */

/* Where the proxy is, and "glovebox:TOKEN", off the call's environment. */
static bool proxy_of(const struct call *call, uint16_t *port, char credentials[CREDENTIALS])
{
	for (const char *const *at = call->environment; *at != NULL; at++) {
		if (strncmp(*at, "HTTP_PROXY=http://", 18) != 0)
			continue;
		(void)snprintf(credentials, CREDENTIALS, "%.41s", *at + 18);
		return network_parse_port(str_of(strrchr(*at, ':') + 1), port);
	}
	return false;
}

static void add_base64(struct buf *out, const char *text)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned held = 0;
	int bits = 0;

	for (; *text != '\0'; text++) {
		held = held << 8 | (unsigned char)*text;
		for (bits += 8; bits >= 6; bits -= 6)
			(void)buf_addc(out, digits[held >> (bits - 6) & 63]);
	}
	if (bits > 0)
		(void)buf_addc(out, digits[held << (6 - bits) & 63]);
}

static bool is_readable(int fd)
{
	struct pollfd wanted = {.fd = fd, .events = POLLIN};

	return poll(&wanted, 1, WAIT_MS) > 0;
}

/* A tunnel to HOST by CREDENTIALS, and the proxy's answer. */
static int tunnel(uint16_t port, const char *credentials, const char *host,
		  char answer[ANSWER_MAX])
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
					    .sin_port = htons(port),
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct buf text;
	ssize_t n;

	buf_init(&text, 4096);
	(void)buf_addf(&text, "CONNECT %s HTTP/1.1\r\nProxy-Authorization: Basic ", host);
	add_base64(&text, credentials);
	(void)buf_adds(&text, "\r\n\r\n");
	answer[0] = '\0';
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
	    write(fd, text.data, text.size) == (ssize_t)text.size && is_readable(fd)) {
		n = read(fd, answer, ANSWER_MAX - 1);
		answer[n > 0 ? n : 0] = '\0';
	}
	buf_fini(&text);
	return fd;
}

static enum result_status ask(struct call *call, struct tool_result *result)
{
	const char *given = call_text(call, "credentials");
	char own[CREDENTIALS], answer[ANSWER_MAX];
	uint16_t port;

	if (!proxy_of(call, &port, own))
		return tool_fail(result, "no proxy");
	auto_close int fd =
		tunnel(port, given != NULL ? given : own, call_text(call, "host"), answer);
	(void)buf_addf(&result->text, "%s %.12s", own, answer);
	return fd >= 0 ? tool_done(result) : tool_fail(result, "no socket");
}

static const struct sockaddr_un meeting = {.sun_family = AF_UNIX, .sun_path = "/tmp/meet"};

union rights {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* Open a tunnel, hand it to `take`, and end. */
static enum result_status give(struct call *call, struct tool_result *result)
{
	char own[CREDENTIALS], answer[ANSWER_MAX], byte = 'x';
	union rights rights = {0};
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = rights.bytes,
				 .msg_controllen = sizeof(rights.bytes)};
	auto_close int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint16_t port;

	if (!proxy_of(call, &port, own))
		return tool_fail(result, "no proxy");
	auto_close int fd = tunnel(port, own, call_text(call, "host"), answer);
	while (connect(other, (const struct sockaddr *)&meeting, sizeof(meeting)) < 0) {
		if (call_stopped(call))
			return call_stop_result(call, result);
	}
	struct cmsghdr *first = CMSG_FIRSTHDR(&message);
	first->cmsg_level = SOL_SOCKET;
	first->cmsg_type = SCM_RIGHTS;
	first->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(first), &fd, sizeof(fd));
	if (sendmsg(other, &message, MSG_NOSIGNAL) != 1 || read(other, &byte, 1) != 1)
		return tool_fail(result, "nobody took it");
	(void)buf_addf(&result->text, "%.12s", answer);
	return tool_done(result);
}

static enum result_status take(struct call *call, struct tool_result *result)
{
	char byte = 0;
	union rights rights = {0};
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = rights.bytes,
				 .msg_controllen = sizeof(rights.bytes)};
	auto_close int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = -1;

	(void)call;
	if (bind(listener, (const struct sockaddr *)&meeting, sizeof(meeting)) < 0 ||
	    listen(listener, 1) < 0)
		return tool_fail(result, "%s", strerror(errno));
	auto_close int other = accept(listener, NULL, NULL);
	if (recvmsg(other, &message, MSG_CMSG_CLOEXEC) != 1 ||
	    CMSG_FIRSTHDR(&message) == NULL)
		return tool_fail(result, "nothing was given");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	if (recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		(void)buf_adds(&result->text, "alive ");
	(void)!write(other, "k", 1);
	(void)buf_adds(&result->text,
		       is_readable(fd) && recv(fd, &byte, 1, 0) <= 0 ? "ended" : "goes on");
	(void)close(fd);
	return tool_done(result);
}

static const struct tool_param ask_params[] = {
	{"host", PARAM_TEXT, true, "host:port"},
	{"credentials", PARAM_TEXT, false, "Others than one's own"},
	{0},
};
static const struct tool_param no_params[] = {{0}};

static const struct tool ask_tool = {.name = "ask",
				     .description = "Ask the proxy.",
				     .example = "{\"host\": \"a.example:443\"}",
				     .params = ask_params,
				     .effects = EFFECT_RUNS,
				     .timeout_s = 10,
				     .execute = ask};
static const struct tool give_tool = {.name = "give",
				      .description = "Give a tunnel away.",
				      .example = "{\"host\": \"a.example:443\"}",
				      .params = ask_params,
				      .effects = EFFECT_RUNS,
				      .timeout_s = 10,
				      .execute = give};
static const struct tool take_tool = {.name = "take",
				      .description = "Take a tunnel.",
				      .example = "{}",
				      .params = no_params,
				      .effects = EFFECT_RUNS,
				      .timeout_s = 20,
				      .execute = take};
static const struct tool *const tools[] = {&ask_tool, &give_tool, &take_tool, NULL};

/* ---- a session with one listed host: a listener of this program ---- */

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
		.tools = tools,
		.ready_workers = 2,
		.cancel_fd = -1,
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

	session_role(argc, argv, tools);
	proxy_role(argc, argv);
	return cmocka_run_group_tests(cases, NULL, NULL);
}
