/* Tests of mcp/http_daemon: what a client hears while it waits. */
#include "../base/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "mcp/server/http_daemon.h"

#define BEAT ": still here\n\n"

enum {
	BEAT_MS = 100,
	NEXT_HEAD_MS = 300,
	WAIT_MS = 30000,
	ANSWER_MAX = 64 << 10,
};

/* A daemon, the request that it has, and what its client has read. */
struct room {
	struct loop *loop;
	struct http_daemon *daemon;
	struct http_exchange *exchange;
	int client;
	struct buf heard;
	bool over; /* the connection has been closed */
};

static void *head(void *context, struct http_exchange *exchange)
{
	(void)exchange;
	return context;
}

static void whole(void *context, struct http_exchange *exchange, struct str body)
{
	struct room *room = context;

	(void)body;
	room->exchange = exchange;
	http_daemon_stream_if_late(exchange, "text/event-stream", STR(BEAT));
}

static void over(void *context, struct http_exchange *exchange)
{
	struct room *room = context;

	(void)exchange;
	room->exchange = NULL;
}

/* How often TEXT has been heard. */
static size_t times_heard(const struct room *room, const char *text)
{
	size_t count = 0;

	for (const char *at = room->heard.data; at != NULL; count += at != NULL) {
		at = strstr(at, text);
		at = at != NULL ? at + strlen(text) : NULL;
	}
	return count;
}

static void turn(struct room *room)
{
	char bytes[4096];
	ssize_t size;

	loop_turn(room->loop, clock_now_ms() + 1);
	size = recv(room->client, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (size > 0)
		assert_true(buf_add(&room->heard, bytes, (size_t)size));
	room->over = room->over || size == 0 || (size < 0 && errno == ECONNRESET);
}

static void hear(struct room *room, const char *text, size_t times)
{
	const int64_t until_ms = clock_now_ms() + WAIT_MS;

	while (times_heard(room, text) < times) {
		if (clock_now_ms() > until_ms)
			fail_msg("heard: %s", room->heard.data);
		turn(room);
	}
}

static int enter(void **state)
{
	struct room *room = test_calloc(1, sizeof(*room));
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	struct http_daemon_options options = {
		.body_max = 100,
		.beat_ms = BEAT_MS,
		.next_head_ms = NEXT_HEAD_MS,
		.head = head,
		.whole = whole,
		.dropped = over,
		.over = over,
		.context = room,
	};
	struct err err;

	room->loop = options.loop = loop_new();
	buf_init(&room->heard, ANSWER_MAX);
	options.take_socket =
		socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_return_code(bind(options.take_socket, (struct sockaddr *)&address, size), 0);
	assert_return_code(listen(options.take_socket, 1), 0);
	assert_return_code(getsockname(options.take_socket, (struct sockaddr *)&address,
				       &size),
			   0);
	if (!http_daemon_open(&options, &room->daemon, &err))
		fail_msg("%s", err.text);
	room->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_return_code(connect(room->client, (struct sockaddr *)&address, size), 0);
	*state = room;
	return 0;
}

static int leave(void **state)
{
	struct room *room = *state;

	(void)close(room->client);
	http_daemon_close(room->daemon);
	loop_free(room->loop);
	buf_fini(&room->heard);
	test_free(room);
	return 0;
}

static void ask(struct room *room)
{
	static const char request[] = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";

	assert_int_equal(send(room->client, request, strlen(request), 0), strlen(request));
	while (room->exchange == NULL)
		turn(room);
}

static void who_waits_hears_a_stream_begin_and_beat(void **state)
{
	struct room *room = *state;

	ask(room);
	assert_int_equal(room->heard.size, 0);
	hear(room, BEAT, 3);
	assert_int_equal(times_heard(room, "text/event-stream"), 1);
	http_daemon_stream_add(room->exchange, STR("data: 1\n\n"));
	hear(room, "data: 1\n\n", 1);
	hear(room, BEAT, 5);
	http_daemon_stream_end(room->exchange);
	/* The end of what came in chunks. */
	hear(room, "\r\n0\r\n\r\n", 1);
}

static void what_is_answered_in_time_is_no_stream(void **state)
{
	struct room *room = *state;

	ask(room);
	http_daemon_answer(room->exchange, 200, "text/plain", STR("done"));
	hear(room, "\r\n\r\ndone", 1);
	for (const int64_t until_ms = clock_now_ms() + 3 * BEAT_MS;
	     clock_now_ms() < until_ms;)
		turn(room);
	assert_int_equal(times_heard(room, BEAT), 0);
}

static void a_next_head_in_single_bytes_has_an_end(void **state)
{
	static const char head_text[] = "GET /x HTTP/1.1\r\nHost: localhost\r\nX-Long: ";
	struct room *room = *state;
	const int64_t until_ms = clock_now_ms() + WAIT_MS;

	ask(room);
	http_daemon_answer(room->exchange, 200, "text/plain", STR("done"));
	hear(room, "\r\n\r\ndone", 1);
	/* The library waits for as long as something comes. */
	for (size_t sent = 0; !room->over; sent++) {
		assert_true(clock_now_ms() < until_ms);
		(void)send(room->client, sent < strlen(head_text) ? &head_text[sent] : "x",
			   1, MSG_NOSIGNAL);
		turn(room);
	}
	assert_null(room->exchange);
}

/* A further client of ROOM's daemon, whose request has come. */
static void further_client(struct room *room)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);
	const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_return_code(getpeername(room->client, (struct sockaddr *)&address, &size), 0);
	assert_return_code(connect(client, (struct sockaddr *)&address, size), 0);
	(void)close(room->client);
	room->client = client;
	room->exchange = NULL;
	ask(room);
}

static void long_answers_that_nobody_reads_leave_room_for_short_ones(void **state)
{
	enum { CLIENTS = 6, LONG = 60 << 20 };
	struct room *room = *state;
	const struct str long_text = {test_calloc(LONG, 1), LONG};
	int clients[CLIENTS];

	ask(room);
	for (size_t i = 0; i < CLIENTS; i++) {
		http_daemon_answer(room->exchange, 200, "text/plain", long_text);
		clients[i] = dup(room->client);
		further_client(room);
	}
	/* Of these some were refused already; one more long answer is, a short one is not. */
	http_daemon_answer(room->exchange, 200, "text/plain", long_text);
	hear(room, "Too much that was answered is unread", 1);
	further_client(room);
	http_daemon_answer(room->exchange, 200, "text/plain", STR("done"));
	hear(room, "\r\n\r\ndone", 1);
	for (size_t i = 0; i < CLIENTS; i++)
		(void)close(clients[i]);
	test_free((void *)(uintptr_t)long_text.data);
}

static void a_daemon_that_stops_says_when_all_is_answered(void **state)
{
	struct room *room = *state;

	ask(room);
	assert_false(http_daemon_stop_listening(room->daemon));
	http_daemon_answer(room->exchange, 200, "text/plain", STR("done"));
	hear(room, "\r\n\r\ndone", 1);
	assert_int_equal(times_heard(room, "Connection: close\r\n"), 1);
	while (!http_daemon_stop_listening(room->daemon))
		turn(room);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test_setup_teardown(who_waits_hears_a_stream_begin_and_beat,
						enter, leave),
		cmocka_unit_test_setup_teardown(what_is_answered_in_time_is_no_stream,
						enter, leave),
		cmocka_unit_test_setup_teardown(a_next_head_in_single_bytes_has_an_end,
						enter, leave),
		cmocka_unit_test_setup_teardown(
			long_answers_that_nobody_reads_leave_room_for_short_ones, enter,
			leave),
		cmocka_unit_test_setup_teardown(a_daemon_that_stops_says_when_all_is_answered,
						enter, leave),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
