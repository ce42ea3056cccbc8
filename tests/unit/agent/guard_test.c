/* guard: what counts as going round in circles. */
#include "agent/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool call(struct guard *guard, const char *tool, const char *arguments)
{
	struct err why = {0};
	bool fine = guard_call(guard, tool, arguments, &why);

	assert_true(fine || strstr(why.text, tool));
	return fine;
}

static void the_third_identical_call_in_a_row_stops(void **state)
{
	struct guard guard = {0};

	(void)state;
	assert_true(call(&guard, "bash", "{\"command\":\"make\"}"));
	assert_true(call(&guard, "bash", "{\"command\":\"make\"}"));
	assert_false(call(&guard, "bash", "{\"command\":\"make\"}"));
}

static void arguments_are_compared_as_json(void **state)
{
	struct guard guard = {0};

	(void)state;
	assert_true(call(&guard, "read_file", "{\"path\":\"a\",\"start_line\":1}"));
	assert_true(call(&guard, "read_file", "{ \"start_line\" : 1, \"path\" : \"a\" }"));
	assert_false(call(&guard, "read_file", "{\"path\":\"a\",\n\"start_line\":1}"));
}

static void no_arguments_are_an_empty_object(void **state)
{
	struct guard guard = {0};

	(void)state;
	assert_true(call(&guard, "list_files", ""));
	assert_true(call(&guard, "list_files", "{}"));
	assert_false(call(&guard, "list_files", NULL));
}

static void invalid_arguments_are_compared_by_their_bytes(void **state)
{
	struct guard guard = {0};

	(void)state;
	assert_true(call(&guard, "bash", "{\"command\":"));
	assert_true(call(&guard, "bash", "{\"command\":"));
	assert_true(call(&guard, "bash",
			 "{\"command\": "
			 "\"x"));
	assert_true(call(&guard, "bash", "{\"command\":"));
	assert_true(call(&guard, "bash", "{\"command\":"));
	assert_false(call(&guard, "bash", "{\"command\":"));
}

static void another_call_between_breaks_the_row(void **state)
{
	struct guard guard = {0};

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_true(call(&guard, "bash", "{\"command\":\"make\"}"));
		assert_true(call(&guard, "bash", "{\"command\":\"make\"}"));
		assert_true(call(&guard, "edit_file", i ? "{\"a\":1}" : "{\"a\":2}"));
	}
}

static void the_sixth_equal_call_of_ten_stops(void **state)
{
	struct guard guard = {0};
	char other[32];

	(void)state;
	for (int i = 0; i < 5; i++) {
		(void)snprintf(other, sizeof(other), "{\"n\":%d}", i);
		assert_true(call(&guard, "bash", "{}"));
		if (i < 4)
			assert_true(call(&guard, "bash", other));
	}
	assert_false(call(&guard, "bash", "{}"));
}

static void equal_calls_far_apart_are_fine(void **state)
{
	struct guard guard = {0};
	char other[32];

	(void)state;
	for (int i = 0; i < 100; i++) {
		(void)snprintf(other, sizeof(other), "{\"n\":%d}", i);
		assert_true(call(&guard, "bash", "{}"));
		assert_true(call(&guard, "read_file", other));
	}
}

static void the_tool_counts_too(void **state)
{
	struct guard guard = {0};

	(void)state;
	assert_true(call(&guard, "glob", "{}"));
	assert_true(call(&guard, "grep", "{}"));
	assert_true(call(&guard, "glob", "{}"));
	assert_true(call(&guard, "grep", "{}"));
}

static void three_timeouts_in_a_row_stop(void **state)
{
	struct guard guard = {0};
	struct err why = {0};

	(void)state;
	assert_true(guard_result(&guard, RESULT_TIMED_OUT, &why));
	assert_true(guard_result(&guard, RESULT_TIMED_OUT, &why));
	assert_true(guard_result(&guard, RESULT_DONE, &why));
	assert_true(guard_result(&guard, RESULT_TIMED_OUT, &why));
	assert_true(guard_result(&guard, RESULT_TIMED_OUT, &why));
	assert_false(guard_result(&guard, RESULT_TIMED_OUT, &why));
	assert_non_null(strstr(why.text, "3 calls in a row"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_third_identical_call_in_a_row_stops),
		cmocka_unit_test(arguments_are_compared_as_json),
		cmocka_unit_test(no_arguments_are_an_empty_object),
		cmocka_unit_test(invalid_arguments_are_compared_by_their_bytes),
		cmocka_unit_test(another_call_between_breaks_the_row),
		cmocka_unit_test(the_sixth_equal_call_of_ten_stops),
		cmocka_unit_test(equal_calls_far_apart_are_fine),
		cmocka_unit_test(the_tool_counts_too),
		cmocka_unit_test(three_timeouts_in_a_row_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
