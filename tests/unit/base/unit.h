/* unit: what every unit test of base/ includes: cmocka with the headers it needs before it. */
#pragma once
/* clang-format off: cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
/* clang-format on */

#define UNIT_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Skips the test that calls it; make check lists WHY. */
static inline void unit_skip(const char *why)
{
	print_message("# skip: %s\n", why);
	skip();
}
