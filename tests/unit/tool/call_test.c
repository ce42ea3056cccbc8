/* Tests of tool/call: what a tool may ask and tell while it runs. */
#include "../base/unit.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "process/frame.h"
#include "tool/call.h"

enum { WAIT_MS = 30000 };

static void a_call_runs_until_its_deadline(void **state)
{
	struct call call = {.control_fd = -1, .deadline_ms = CLOCK_NEVER};

	(void)state;
	assert_false(call_stopped(&call));
	call.deadline_ms = clock_now_ms() + 20;
	assert_false(call_stopped(&call));
	while (!call_stopped(&call))
		(void)usleep(1000);
	assert_true(clock_now_ms() >= call.deadline_ms);
	assert_false(call.cancelled);
}

static void a_cancel_and_a_front_that_is_gone_stop_a_call(void **state)
{
	int ends[2];

	(void)state;
	for (int gone = 0; gone < 2; gone++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends),
				 0);
		struct call call = {.control_fd = ends[0], .deadline_ms = CLOCK_NEVER};
		assert_false(call_stopped(&call));
		if (gone)
			fd_close(&ends[1]);
		else
			assert_true(frame_send(ends[1], FRAME_CANCEL, (struct str){"", 0},
					       NULL, 0, CLOCK_NEVER, NULL));
		/* It asks the socket every few milliseconds only. */
		int64_t until = clock_now_ms() + WAIT_MS;
		while (!call_stopped(&call) && clock_now_ms() < until)
			(void)usleep(1000);
		assert_true(call.cancelled);
		fd_close(&ends[0]);
		fd_close(&ends[1]);
	}
}

static void a_stopped_call_says_why(void **state)
{
	struct call call = {.cancelled = true};
	struct tool_result result;

	(void)state;
	tool_result_init(&result);
	assert_int_equal(call_stop_result(&call, &result), RESULT_CANCELLED);
	assert_non_null(strstr(result.text.data, "Cancelled"));
	tool_result_fini(&result);
	tool_result_init(&result);
	call.cancelled = false;
	assert_int_equal(call_stop_result(&call, &result), RESULT_TIMED_OUT);
	assert_int_equal(result.status, RESULT_TIMED_OUT);
	tool_result_fini(&result);
}

/* The next frame at the front's end. */
static void next_frame(struct frame_reader *reader, int socket, struct frame *frame)
{
	struct err err;

	assert_true(frame_wait(reader, socket, clock_now_ms() + WAIT_MS, frame, &err));
}

static void output_is_a_frame_of_its_stream_and_keeps_the_last_of_it(void **state)
{
	static char text[CALL_FRAGMENT_MAX + 100];
	struct frame_reader reader;
	struct frame frame;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	frame_reader_init(&reader);
	struct call call = {.control_fd = ends[0], .deadline_ms = CLOCK_NEVER};
	call_output(&call, CALL_STDOUT, STR(""));
	call_output(&call, CALL_STDERR, STR("oh"));
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = 'z';
	call_output(&call, CALL_STDOUT, (struct str){text, sizeof(text)});
	next_frame(&reader, ends[1], &frame);
	assert_int_equal(frame.kind, FRAME_STDERR);
	assert_int_equal(frame.payload.size, 2);
	next_frame(&reader, ends[1], &frame);
	assert_int_equal(frame.kind, FRAME_STDOUT);
	assert_int_equal(frame.payload.size, CALL_FRAGMENT_MAX);
	assert_int_equal(frame.payload.data[CALL_FRAGMENT_MAX - 1], 'z');
	frame_reader_fini(&reader);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
}

static void output_nobody_takes_is_dropped(void **state)
{
	static char text[CALL_FRAGMENT_MAX];
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
				    0, ends),
			 0);
	struct call call = {.control_fd = ends[0], .deadline_ms = CLOCK_NEVER};
	struct pollfd room = {.fd = ends[0], .events = POLLOUT};
	while (poll(&room, 1, 0) == 1)
		assert_true(write(ends[0], text, sizeof(text)) > 0);
	int64_t began = clock_now_ms();
	call_output(&call, CALL_STDOUT, STR("lost"));
	assert_true(clock_now_ms() - began < WAIT_MS);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	call.control_fd = -1;
	call_output(&call, CALL_STDOUT, STR("nowhere"));
}

static void what_was_seen_comes_back_with_the_result(void **state)
{
	auto_value struct value *seen = value_new_object();
	struct call call = {.seen = seen};
	struct tool_result result;

	(void)state;
	value_set_text(seen, "/w/a", "abc");
	assert_string_equal(call_seen(&call, "/w/a"), "abc");
	assert_null(call_seen(&call, "/w/b"));
	tool_result_init(&result);
	call_saw(&result, "/w/b", "def");
	call_set_folder(&call, &result, "/w/d");
	assert_string_equal(value_text(value_member(result.seen, "/w/b")), "def");
	assert_string_equal(value_text(value_member(result.seen, CALL_FOLDER_KEY)), "/w/d");
	tool_result_fini(&result);
}

static void arguments_are_read_by_name(void **state)
{
	auto_value struct value *arguments = value_new_object();
	struct call call = {.arguments = arguments};

	(void)state;
	value_set_text(arguments, "path", "a");
	value_set_integer(arguments, "lines", 7);
	value_set_boolean(arguments, "all", true);
	assert_string_equal(call_text(&call, "path"), "a");
	assert_null(call_text(&call, "lines"));
	assert_int_equal(call_str(&call, "path").size, 1);
	assert_int_equal(call_str(&call, "missing").size, 0);
	assert_int_equal(call_count(&call, "lines", 3), 7);
	assert_int_equal(call_count(&call, "missing", 3), 3);
	assert_int_equal(call_count(&call, "path", 3), 3);
	assert_true(call_flag(&call, "all"));
	assert_false(call_flag(&call, "missing"));
}

static void a_calls_variables_replace_the_cells(void **state)
{
	static const char *const cell[] = {"PATH=/bin", "HTTP_PROXY=old", "HTTP=x", NULL};
	auto_value struct value *more = value_new_array();
	auto_free const char **none = call_environment(cell, NULL);

	(void)state;
	assert_string_equal(none[1], "HTTP_PROXY=old");
	assert_string_equal(none[2], "HTTP=x");
	assert_null(none[3]);
	value_append(more, value_new_text("HTTP_PROXY=new"));
	value_append(more, value_new_text("A=b"));
	auto_free const char **both = call_environment(cell, more);
	assert_string_equal(both[0], "PATH=/bin");
	assert_string_equal(both[1], "HTTP=x");
	assert_string_equal(both[2], "HTTP_PROXY=new");
	assert_string_equal(both[3], "A=b");
	assert_null(both[4]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_calls_variables_replace_the_cells),
		cmocka_unit_test(a_call_runs_until_its_deadline),
		cmocka_unit_test(a_cancel_and_a_front_that_is_gone_stop_a_call),
		cmocka_unit_test(a_stopped_call_says_why),
		cmocka_unit_test(output_is_a_frame_of_its_stream_and_keeps_the_last_of_it),
		cmocka_unit_test(output_nobody_takes_is_dropped),
		cmocka_unit_test(what_was_seen_comes_back_with_the_result),
		cmocka_unit_test(arguments_are_read_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
