/* Tests of base/cores. */
#include "unit.h"

#include <sched.h>

#include "base/clock.h"

static void who_is_bound_to_one_has_one(void **state)
{
	cpu_set_t all, one;
	size_t first = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(clock_cores_usable(), CPU_COUNT(&all));
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(clock_cores_usable(), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_bound_to_one_has_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
