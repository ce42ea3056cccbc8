#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void of_nothing_is_zero(void **state)
{
	(void)state;
	assert_int_equal(0, 0);
}

static void of_two(void **state)
{
	(void)state;
	assert_int_equal(1 + 2, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_nothing_is_zero),
		cmocka_unit_test(of_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
