/* test_perl: prove, for files that speak TAP in whatever language. */
#include "tools/tests/run_tests.h"

#include <string.h>

static const char *prove_detect(const struct test_project *project)
{
	const char *name = test_project_fits(project, "t", "*.t");

	return name != NULL ? name : test_project_first(project, ".proverc");
}

static bool prove_plan(const struct test_request *request, struct test_plan *plan,
		       struct buf *sentence)
{
	const struct test_report *again = request->again;

	(void)sentence;
	test_plan_step(request, plan, "prove");
	test_plan_add(request, plan, "--merge");
	test_plan_add(request, plan, "--nocolor");
	test_plan_add(request, plan, "-l");
	test_plan_add(request, plan, "-r");
	test_plan_add(request, plan, "-v");
	for (size_t i = 0; again != NULL && i < again->count; i++) {
		const char *file = again->failures[i].select;
		bool known = file == NULL;

		for (size_t j = 0; j < i && !known; j++)
			known = again->failures[j].select != NULL &&
				strcmp(again->failures[j].select, file) == 0;
		if (!known)
			test_plan_add(request, plan, "%s", file);
	}
	if (again == NULL && request->file != NULL)
		test_plan_add(request, plan, "%s", request->file);
	return true;
}

const struct test_runner prove_runner = {
	.name = "prove",
	.needs = "t/*.t",
	.missing = "Debian's package perl has it",
	.files = "*.t",
	.no_filter = "prove runs whole files: name one with `file`",
	.no_suite = "prove has no suites: name a folder with `file`",
	.detect = prove_detect,
	.plan = prove_plan,
	.parse = test_parse_prove,
};
