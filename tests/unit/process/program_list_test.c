/* program_list: lists as a shell would run them, and their ends. */
#include "process/follow.h"
#include "process/program.h"

#include "../base/unit.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

static const char *const environment[] = {"PATH=/usr/bin:/bin", NULL};

/* Words of one program in a table of constants. */
enum { WORDS = 4, ITEMS = 4 };

struct row_item {
	enum program_join join;
	const char *words[WORDS];
};

static size_t list_of(const struct row_item *rows, size_t most, struct program_item *items)
{
	size_t count = 0;

	while (count < most && rows[count].words[0] != NULL) {
		items[count] = (struct program_item){rows[count].join, rows[count].words};
		count++;
	}
	return count;
}

static void follow(const struct row_item *rows, size_t most, struct program_run *run)
{
	struct program_item items[ITEMS];
	size_t count = list_of(rows, most, items);
	const struct program_start start = {
		.environment = environment,
		.fds = {-1, -1, -1},
	};
	struct err err = {0};

	program_run_init(run);
	run->deadline_ms = clock_deadline(30);
	if (!program_list_start_ahead(&start, items, count, &run->ahead, &err) ||
	    !follow_program(run, &err))
		fail_msg("%s", err.text);
	assert_int_equal(run->ending, PROGRAM_ENDED);
}

static void codes_and_output_are_a_shells(void **state)
{
	static const struct {
		struct row_item items[ITEMS];
		const char *out;
		int code;
	} rows[] = {
		{{{PROGRAM_THEN, {"echo", "a"}}}, "a\n", 0},
		{{{PROGRAM_THEN, {"sh", "-c", "exit 3"}}}, "", 3},
		{{{PROGRAM_THEN, {"sh", "-c", "exit 3"}}, {PROGRAM_THEN, {"echo", "a"}}},
		 "a\n",
		 0},
		{{{PROGRAM_THEN, {"sh", "-c", "exit 3"}}, {PROGRAM_AND, {"echo", "a"}}},
		 "",
		 3},
		{{{PROGRAM_THEN, {"sh", "-c", "exit 3"}}, {PROGRAM_OR, {"echo", "a"}}},
		 "a\n",
		 0},
		{{{PROGRAM_THEN, {"sh", "-c", "exit 0"}},
		  {PROGRAM_OR, {"echo", "a"}},
		  {PROGRAM_AND, {"echo", "b"}}},
		 "b\n",
		 0},
		{{{PROGRAM_THEN, {"sh", "-c", "exit 1"}},
		  {PROGRAM_AND, {"echo", "a"}},
		  {PROGRAM_OR, {"echo", "b"}}},
		 "b\n",
		 0},
		{{{PROGRAM_THEN, {"sh", "-c", "exit 1"}},
		  {PROGRAM_AND, {"echo", "a"}},
		  {PROGRAM_PIPE, {"echo", "b"}}},
		 "",
		 1},
		{{{PROGRAM_THEN, {"echo", "a"}},
		  {PROGRAM_PIPE, {"cat"}},
		  {PROGRAM_PIPE, {"tr", "a", "b"}}},
		 "b\n",
		 0},
		{{{PROGRAM_THEN, {"sh", "-c", "exit 4"}},
		  {PROGRAM_PIPE, {"sh", "-c", "exit 0"}}},
		 "",
		 0},
		{{{PROGRAM_THEN, {"sh", "-c", "exit 0"}},
		  {PROGRAM_PIPE, {"sh", "-c", "exit 4"}}},
		 "",
		 4},
		{{{PROGRAM_THEN, {"yes"}}, {PROGRAM_PIPE, {"head", "-n", "1"}}}, "y\n", 0},
		{{{PROGRAM_THEN, {"cat"}}}, "", 0},
		{{{PROGRAM_THEN, {"no-such-program"}}}, "", 127},
		{{{PROGRAM_THEN, {"no-such-program"}}, {PROGRAM_PIPE, {"cat"}}}, "", 0},
		{{{PROGRAM_THEN, {"echo", "a"}}, {PROGRAM_PIPE, {"no-such-program"}}}, "", 127},
		{{{PROGRAM_THEN, {"/"}}}, "", 126},
		{{{PROGRAM_THEN, {"sh", "-c", "kill -9 $$"}}}, "", 137},
		{{{PROGRAM_THEN, {""}}}, "", 127},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct program_run run;

		follow(rows[i].items, ITEMS, &run);
		if (run.exit_code != rows[i].code ||
		    strcmp(run.out.head.data, rows[i].out) != 0)
			fail_msg("row %zu: code %d, \"%s\", \"%s\"", i, run.exit_code,
				 run.out.head.data, run.error.head.data);
		assert_int_equal(run.left_processes, 0);
		program_run_fini(&run);
	}
}

static void a_failure_is_told_on_the_second_stream(void **state)
{
	const struct row_item rows[] = {{PROGRAM_THEN, {"no-such-program"}}};
	struct program_run run;

	(void)state;
	follow(rows, 1, &run);
	assert_non_null(strstr(run.error.head.data, "no-such-program: command not found."));
	program_run_fini(&run);
}

static void a_folder_that_is_missing_is_an_error(void **state)
{
	const struct row_item rows[] = {{PROGRAM_THEN, {"true"}}};
	struct program_item items[ITEMS];
	const struct program_start start = {
		.environment = environment,
		.folder = "/no/such/folder",
		.fds = {-1, -1, -1},
	};
	struct program_ahead ahead;
	struct err err = {0};

	(void)state;
	assert_false(program_list_start_ahead(&start, items, list_of(rows, 1, items),
					      &ahead, &err));
	assert_int_equal(err.code, ENOTDIR);
	assert_non_null(strstr(err.text, "/no/such/folder"));
}

static void programs_have_three_descriptors(void **state)
{
	const struct row_item rows[] = {
		{PROGRAM_THEN, {"true"}},
		{PROGRAM_PIPE, {"ls", "/proc/self/fd"}},
		{PROGRAM_PIPE, {"cat"}},
	};
	struct program_run run;

	(void)state;
	follow(rows, 3, &run);
	/* the last is the folder it reads */
	assert_string_equal(run.out.head.data, "0\n1\n2\n3\n");
	program_run_fini(&run);
}

static void at_the_deadline_every_stage_ends(void **state)
{
	const struct row_item rows[] = {
		{PROGRAM_THEN, {"sleep", "60"}},
		{PROGRAM_PIPE, {"sleep", "60"}},
		{PROGRAM_THEN, {"echo", "never"}},
	};
	struct program_item items[ITEMS];
	const struct program_start start = {.environment = environment, .fds = {-1, -1, -1}};
	struct program_run run;
	struct err err = {0};

	(void)state;
	program_run_init(&run);
	run.deadline_ms = clock_deadline(0.5);
	assert_true(program_list_start_ahead(&start, items, list_of(rows, 3, items),
					     &run.ahead, &err));
	assert_true(follow_program(&run, &err));
	assert_int_equal(run.ending, PROGRAM_TIMED_OUT);
	assert_string_equal(run.out.head.data, "");
	program_run_fini(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_and_output_are_a_shells),
		cmocka_unit_test(a_failure_is_told_on_the_second_stream),
		cmocka_unit_test(a_folder_that_is_missing_is_an_error),
		cmocka_unit_test(programs_have_three_descriptors),
		cmocka_unit_test(at_the_deadline_every_stage_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
