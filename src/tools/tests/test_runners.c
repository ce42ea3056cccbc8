/* test_runners: the table; see test_runner.h. */
#include "tools/tests/test_runner.h"

#include <string.h>

const struct test_runner *const test_runners[] = {
	&phpunit_runner, &pytest_runner, &go_runner,    &cargo_runner, &node_runner,
	&jest_runner,    &vitest_runner, &meson_runner, &ctest_runner, &prove_runner,
	&make_runner,    &mocha_runner,  NULL,
};

const struct test_runner *test_runner_find(const char *name)
{
	for (size_t i = 0; test_runners[i] != NULL; i++) {
		if (strcmp(test_runners[i]->name, name) == 0)
			return test_runners[i];
	}
	return NULL;
}
