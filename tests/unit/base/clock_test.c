/* Tests of base/clock. */
#include "unit.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

static void time_does_not_go_back(void **state)
{
	int64_t ms = clock_now_ms(), us = clock_now_us();

	(void)state;
	assert_true(us / 1000 >= ms);
	assert_true(clock_now_us() >= us);
	for (int64_t after = 1; after < 3000; after += 999) {
		const struct timespec at = clock_after(after);

		assert_true(at.tv_nsec >= 0 && at.tv_nsec < CLOCK_SECOND_NS);
		assert_true(clock_ns(&at) / 1000000 >= ms + after);
		assert_true(clock_ns(&at) / 1000000 <= clock_now_ms() + after);
	}
	/* After 2020 and before 2200. */
	assert_true(clock_wall_ms() > 1577836800000 && clock_wall_ms() < 7258118400000);
}

static void poll_timeouts_fit_an_int(void **state)
{
	(void)state;
	assert_int_equal(clock_poll_timeout(CLOCK_NEVER), -1);
	assert_int_equal(clock_poll_timeout(INT64_MIN), 0);
	assert_int_equal(clock_poll_timeout(0), 0);
	assert_int_equal(clock_poll_timeout(CLOCK_NEVER - 1), INT_MAX);
	assert_in_range(clock_poll_timeout(clock_now_ms() + 60000), 50000, 60000);
}

static void deadlines_from_seconds(void **state)
{
	int64_t now = clock_now_ms();

	(void)state;
	assert_true(clock_deadline(0) == CLOCK_NEVER);
	assert_true(clock_deadline(1e300) == CLOCK_NEVER);
	assert_true(clock_deadline(1e9) == CLOCK_NEVER);
	assert_true(clock_deadline((double)NAN) == CLOCK_NEVER);
	assert_true(clock_deadline((double)INFINITY) == CLOCK_NEVER);
	assert_true(clock_deadline(-1) >= now);
	assert_true(clock_deadline(-1) <= clock_now_ms());
	assert_true(clock_deadline(2.5) >= now + 2500);
	assert_true(clock_deadline(2.5) <= clock_now_ms() + 2501);
	/* The least wait is not none. */
	assert_true(clock_deadline(0.00001) >= now + 1);
}

static void times_are_shown_in_the_zone_of_the_machine(void **state)
{
	char text[CLOCK_TEXT], day[CLOCK_DAY];

	(void)state;
	assert_int_equal(setenv("TZ", "XYZ-2", 1), 0);
	tzset();
	clock_text_local(1000000000999, text);
	assert_string_equal(text, "2001-09-09 03:46:40");
	clock_text_day(1000000000999, day);
	assert_string_equal(day, "2001-09-09");
	clock_text_local(-1000, text);
	assert_string_equal(text, "1970-01-01 01:59:59");
	assert_int_equal(unsetenv("TZ"), 0);
	tzset();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_does_not_go_back),
		cmocka_unit_test(poll_timeouts_fit_an_int),
		cmocka_unit_test(deadlines_from_seconds),
		cmocka_unit_test(times_are_shown_in_the_zone_of_the_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
