/* library: what is there is found, and what is missing is named with its package. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/library.h"

static const struct library mathematics = {"libm.so.6", "2.0", "libc6", "testing"};

static void finds_functions_of_a_library_that_is_not_linked(void **state)
{
	double (*root)(double) = NULL;
	const struct library_function wanted[] = {{"cbrt", &root}};
	struct err err = {0};

	(void)state;
	assert_true(library_load(&mathematics, wanted, 1, &err));
	assert_true(root(27.0) > 2.99 && root(27.0) < 3.01);
}

static void a_missing_library_names_the_package_that_brings_it(void **state)
{
	const struct library library = {"libnobody.so.7", "1.0", "libnobody7",
					"asking nobody"};
	struct err err = {0};

	(void)state;
	assert_false(library_load(&library, NULL, 0, &err));
	assert_int_equal(err.code, ENOENT);
	assert_string_equal(err.text,
			    "libnobody.so.7 could not be loaded: asking nobody needs the "
			    "Debian package libnobody7 (apt-get install libnobody7)");
}

static void a_library_without_a_function_is_too_old(void **state)
{
	void (*function)(void) = NULL;
	const struct library_function wanted[] = {{"no_such_function", &function}};
	struct err err = {0};

	(void)state;
	assert_false(library_load(&mathematics, wanted, 1, &err));
	assert_int_equal(err.code, ENOSYS);
	assert_non_null(strstr(err.text, "too old: testing needs 2.0 or newer"));
	assert_null(function);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_functions_of_a_library_that_is_not_linked),
		cmocka_unit_test(a_missing_library_names_the_package_that_brings_it),
		cmocka_unit_test(a_library_without_a_function_is_too_old),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
