/* limits: when a step may begin, when it is the last one, and what it says. */
#include "agent/agent.h"
#include "base/clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int64_t start_ms = 50000;

static enum limits_answer step(struct limits *limits, int64_t now_ms,
			       enum agent_reason *reason, const char *says)
{
	enum limits_answer answer;
	struct buf sentence;

	buf_init(&sentence, 4096);
	answer = limits_step(limits, now_ms, reason, &sentence);
	if (says)
		assert_non_null(strstr(sentence.data, says));
	else
		assert_int_equal(sentence.size, 0);
	buf_fini(&sentence);
	return answer;
}

static void the_last_answer_is_announced_and_the_next_refused(void **state)
{
	struct limits limits = {.iterations_max = 3};
	enum agent_reason reason;

	(void)state;
	limits_init(&limits, start_ms);
	assert_int_equal(step(&limits, start_ms, &reason, NULL), LIMITS_GO);
	assert_int_equal(step(&limits, start_ms, &reason, NULL), LIMITS_GO);
	assert_int_equal(step(&limits, start_ms, &reason, "last step"), LIMITS_LAST);
	assert_int_equal(step(&limits, start_ms, &reason, "3 answers"), LIMITS_STOP);
	assert_int_equal(reason, AGENT_ITERATIONS);
	assert_int_equal(limits.iterations, 3);
}

static void a_single_answer_is_the_last_one(void **state)
{
	struct limits limits = {.iterations_max = 1};
	enum agent_reason reason;

	(void)state;
	limits_init(&limits, start_ms);
	assert_int_equal(step(&limits, start_ms, &reason, "1 answers"), LIMITS_LAST);
	assert_int_equal(step(&limits, start_ms, &reason, "reached"), LIMITS_STOP);
}

static void no_limits_never_stop(void **state)
{
	struct limits limits = {0};
	enum agent_reason reason;

	(void)state;
	limits_init(&limits, start_ms);
	for (int i = 0; i < 1000; i++) {
		limits.tokens += 100000;
		limits.shell_seconds += 100;
		assert_int_equal(step(&limits, start_ms + i * 1000000, &reason, NULL),
				 LIMITS_GO);
	}
	assert_true(isinf(limits_left_s(&limits, start_ms + 1000000, true)));
	assert_true(limits_deadline_ms(&limits) == CLOCK_NEVER);
}

static void money_is_foreseen_by_the_step_before(void **state)
{
	struct limits limits = {.money_max = 0.5};
	enum agent_reason reason;

	(void)state;
	limits_init(&limits, start_ms);
	assert_int_equal(step(&limits, start_ms, &reason, NULL), LIMITS_GO);
	limits.money += 0.3;
	assert_int_equal(step(&limits, start_ms, &reason, "0.5 US dollars, 0.3000 spent"),
			 LIMITS_LAST);
	limits.money += 0.3;
	assert_int_equal(step(&limits, start_ms, &reason, "0.6000 spent"), LIMITS_STOP);
	assert_int_equal(reason, AGENT_MONEY);
}

static void money_that_nobody_counted_is_the_end_where_it_is_limited(void **state)
{
	struct limits limits = {.money_max = 0.5}, free = {0};
	enum agent_reason reason;

	(void)state;
	limits_init(&limits, start_ms);
	limits_init(&free, start_ms);
	limits.money_is_lost = true;
	free.money_is_lost = true;
	assert_int_equal(step(&limits, start_ms, &reason, "did not count"), LIMITS_STOP);
	assert_int_equal(reason, AGENT_MONEY);
	assert_int_equal(step(&free, start_ms, &reason, NULL), LIMITS_GO);
}

static void tokens_are_foreseen_by_the_step_before(void **state)
{
	struct limits limits = {.tokens_max = 100};
	enum agent_reason reason;

	(void)state;
	limits_init(&limits, start_ms);
	assert_int_equal(step(&limits, start_ms, &reason, NULL), LIMITS_GO);
	limits.tokens += 40;
	assert_int_equal(step(&limits, start_ms, &reason, NULL), LIMITS_GO);
	limits.tokens += 45;
	assert_int_equal(step(&limits, start_ms, &reason, "100 tokens, 85 used"),
			 LIMITS_LAST);
	limits.tokens += 5;
	assert_int_equal(step(&limits, start_ms, &reason, "100 tokens, 90 used"),
			 LIMITS_STOP);
	assert_int_equal(reason, AGENT_TOKENS);
}

static void tokens_over_the_limit_stop_unannounced(void **state)
{
	struct limits limits = {.tokens_max = 100};
	enum agent_reason reason;

	(void)state;
	limits_init(&limits, start_ms);
	assert_int_equal(step(&limits, start_ms, &reason, NULL), LIMITS_GO);
	limits.tokens += 1000;
	assert_int_equal(step(&limits, start_ms, &reason, "1000 used"), LIMITS_STOP);
	assert_int_equal(reason, AGENT_TOKENS);
}

static void wall_time_is_foreseen_and_ends(void **state)
{
	struct limits limits = {.wall_s = 10};
	enum agent_reason reason;

	(void)state;
	limits_init(&limits, start_ms);
	assert_true(limits_deadline_ms(&limits) == start_ms + 10000);
	assert_int_equal(step(&limits, start_ms, &reason, NULL), LIMITS_GO);
	assert_int_equal(step(&limits, start_ms + 4000, &reason, NULL), LIMITS_GO);
	assert_int_equal(step(&limits, start_ms + 8000, &reason, "10 seconds"), LIMITS_LAST);
	assert_true(limits_left_s(&limits, start_ms + 8000, false) == 2);
	assert_true(limits_left_s(&limits, start_ms + 18000, true) == 0);
	assert_int_equal(step(&limits, start_ms + 9000, &reason, "10 seconds"), LIMITS_STOP);
	assert_int_equal(reason, AGENT_WALL);
}

static void shell_time_counts_commands_only(void **state)
{
	struct limits limits = {.shell_s = 30};
	enum agent_reason reason;

	(void)state;
	limits_init(&limits, start_ms);
	assert_int_equal(step(&limits, start_ms, &reason, NULL), LIMITS_GO);
	limits.shell_seconds += 12;
	assert_true(limits_left_s(&limits, start_ms, true) == 18);
	assert_true(isinf(limits_left_s(&limits, start_ms, false)));
	assert_int_equal(step(&limits, start_ms + 900000, &reason, NULL), LIMITS_GO);
	limits.shell_seconds += 12;
	assert_int_equal(step(&limits, start_ms + 990000, &reason, "30 seconds in commands"),
			 LIMITS_LAST);
	limits.shell_seconds += 12;
	assert_true(limits_left_s(&limits, start_ms, true) == 0);
	assert_int_equal(step(&limits, start_ms + 991000, &reason, "36 used"), LIMITS_STOP);
	assert_int_equal(reason, AGENT_SHELL);
}

static void the_smaller_of_two_times_is_left(void **state)
{
	struct limits limits = {.wall_s = 100, .shell_s = 30, .shell_seconds = 5};

	(void)state;
	limits_init(&limits, start_ms);
	assert_true(limits_left_s(&limits, start_ms, true) == 25);
	assert_true(limits_left_s(&limits, start_ms, false) == 100);
	assert_true(limits_left_s(&limits, start_ms + 90000, true) == 10);
}

static void reasons_have_names(void **state)
{
	(void)state;
	assert_string_equal(agent_reason_name(AGENT_STOPPED), "stopped");
	assert_string_equal(agent_reason_name(AGENT_CANCELLED), "cancelled");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_answer_is_announced_and_the_next_refused),
		cmocka_unit_test(a_single_answer_is_the_last_one),
		cmocka_unit_test(no_limits_never_stop),
		cmocka_unit_test(money_is_foreseen_by_the_step_before),
		cmocka_unit_test(money_that_nobody_counted_is_the_end_where_it_is_limited),
		cmocka_unit_test(tokens_are_foreseen_by_the_step_before),
		cmocka_unit_test(tokens_over_the_limit_stop_unannounced),
		cmocka_unit_test(wall_time_is_foreseen_and_ends),
		cmocka_unit_test(shell_time_counts_commands_only),
		cmocka_unit_test(the_smaller_of_two_times_is_left),
		cmocka_unit_test(reasons_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
