/* probe: what is found differs by machine; that each fact can be shown and mended does not. */
#include "sandbox/probe.h"

#include "sandbox/landlock.h"
#include "sandbox/sandbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include <cmocka.h>

static const struct probe_fact *fact_of(const struct probe_fact *facts, size_t count,
					const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(facts[i].name, name) == 0)
			return &facts[i];
	return NULL;
}

static void what_is_missing_comes_with_its_remedy(void **state)
{
	struct probe_fact facts[PROBE_FACTS_MAX];
	size_t count = probe_kernel(facts);

	(void)state;
	assert_in_range(count, 5, PROBE_FACTS_MAX);
	for (size_t i = 0; i < count; i++) {
		assert_true(facts[i].name[0] != '\0');
		assert_true(facts[i].value[0] != '\0');
		assert_int_equal(facts[i].missing, facts[i].remedy[0] != '\0');
	}
}

static void the_facts_are_this_kernels(void **state)
{
	struct probe_fact facts[PROBE_FACTS_MAX];
	size_t count = probe_kernel(facts);
	const struct probe_fact *kernel = fact_of(facts, count, "kernel");
	const struct probe_fact *landlock = fact_of(facts, count, "Landlock");
	struct utsname name;

	(void)state;
	assert_int_equal(uname(&name), 0);
	assert_non_null(kernel);
	assert_non_null(strstr(kernel->value, name.release));
	assert_non_null(landlock);
	assert_int_equal(landlock->missing, landlock_abi() == 0);
}

static void no_child_is_left(void **state)
{
	struct probe_fact facts[PROBE_FACTS_MAX];

	(void)state;
	(void)probe_kernel(facts);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_missing_comes_with_its_remedy),
		cmocka_unit_test(the_facts_are_this_kernels),
		cmocka_unit_test(no_child_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
