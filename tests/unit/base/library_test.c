/* library: what is there is found, and what is missing is named with its package. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
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

/* KiB in memory. */
static long resident(void)
{
	struct buf text;
	const char *at;
	long size;

	buf_init(&text, 1 << 16);
	assert_true(fd_read_at(AT_FDCWD, "/proc/self/smaps_rollup", &text));
	at = strstr(text.data, "\nRss:");
	assert_non_null(at);
	size = strtol(at + strlen("\nRss:"), NULL, 10);
	buf_fini(&text);
	return size;
}

static void what_was_read_to_load_is_given_back_and_comes_again(void **state)
{
	double (*root)(double) = NULL;
	const struct library_function wanted[] = {{"cbrt", &root}};
	long before;

	(void)state;
	assert_true(library_load(&mathematics, wanted, 1, NULL));
	before = resident();
	library_trim();
	assert_true(resident() < before);
	assert_true(root(27.0) > 2.99 && root(27.0) < 3.01);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_functions_of_a_library_that_is_not_linked),
		cmocka_unit_test(a_missing_library_names_the_package_that_brings_it),
		cmocka_unit_test(a_library_without_a_function_is_too_old),
		cmocka_unit_test(what_was_read_to_load_is_given_back_and_comes_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
