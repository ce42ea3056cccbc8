/*
 * Fuzz target of the readers of test runners' output (tools/tests/report.h): the first byte
 * chooses the runner, the rest is all it printed and the file it wrote.
 */
#include "tools/tests/run_tests.h"

#include "base/text/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct test_report *report)
{
	if (report->count > TEST_FAILURES_MAX || report->failed < report->count)
		abort();
	for (size_t i = 0; i < report->count; i++) {
		const struct test_failure *failure = &report->failures[i];

		if (strlen(failure->name) > TEST_NAME_MAX ||
		    strlen(failure->text) > TEST_TEXT_MAX ||
		    (failure->line > 0 && failure->file == NULL) ||
		    (i >= TEST_TEXTS_MAX && failure->text[0] != '\0'))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct test_report first, again;
	struct test_output output;
	size_t runners = 0;

	if (size == 0)
		return 0;
	while (test_runners[runners] != NULL)
		runners++;
	const struct test_runner *runner =
		test_runners[(data[0] + runners - 'a' % runners) % runners];
	output = (struct test_output){.module = "example.org/sums"};
	output.out = output.error = output.report = output.progress =
		(struct str){(const char *)data + 1, size - 1};
	test_report_init(&first, "/w/project", "sub/");
	runner->parse(&output, &first);
	check(&first);
	test_report_init(&again, "/w/project", "");
	again.first = &first;
	runner->parse(&output, &again);
	/* The same bytes tell of the same tests. */
	if (test_report_total(&again) != test_report_total(&first))
		abort();
	check(&again);
	test_report_fini(&again);
	test_report_fini(&first);
	return 0;
}
