/* test_php: phpunit. */
#include "base/path.h"
#include "tools/tests/junit.h"
#include "tools/tests/run_tests.h"

#include <limits.h>
#include <string.h>

#define SETTINGS "phpunit.xml phpunit.dist.xml phpunit.xml.dist"

static const char *phpunit_detect(const struct test_project *project)
{
	return test_project_first(project, SETTINGS " vendor/bin/phpunit");
}

/* The folders and files of the suites in its settings. */
static bool phpunit_is_root(const struct test_project *project, const char *file)
{
	const char *name = test_project_first(project, SETTINGS);
	struct xml xml = {.rest = name != NULL ? test_project_read(project, name) : STR("")};
	bool inside = false, found = false;
	struct buf text, normal, own;
	enum xml_event event;

	buf_init(&text, PATH_MAX);
	buf_init(&normal, PATH_MAX);
	buf_init(&own, PATH_MAX);
	(void)path_normal("/", file, &own);
	while (!found && (event = xml_next(&xml)) != XML_END) {
		if (event == XML_TEXT && inside) {
			buf_clear(&text);
			buf_clear(&normal);
			xml_add_text(&xml, &text);
			const char *entry =
				arena_copy(project->arena, str_trim(buf_str(&text)));
			found = path_normal("/", entry, &normal) && normal.size > 1 &&
				path_within(own.data, normal.data);
		} else if (event != XML_TEXT) {
			inside = event == XML_OPEN && (str_is(xml.name, "directory") ||
						       str_is(xml.name, "file"));
		}
		/* The elements after the suites name sources, not tests. */
		if (event == XML_CLOSE && str_is(xml.name, "testsuites"))
			break;
	}
	buf_fini(&text);
	buf_fini(&normal);
	buf_fini(&own);
	return found;
}

static bool phpunit_plan(const struct test_request *request, struct test_plan *plan,
			 struct buf *sentence)
{
	(void)sentence;
	if (test_project_has(request->project, "vendor/bin/phpunit")) {
		test_plan_step(request, plan, "php");
		test_plan_add(request, plan, "vendor/bin/phpunit");
	} else {
		test_plan_step(request, plan, "phpunit");
	}
	test_plan_add(request, plan, "--colors=never");
	test_plan_add(request, plan, "--do-not-cache-result");
	test_plan_add(request, plan, "--log-junit=%s", request->report);
	/* The other one is written when all have run. */
	test_plan_add(request, plan, "--log-teamcity=%s", request->progress);
	if (request->again != NULL)
		test_plan_add(request, plan, "--filter=%s",
			      test_plan_names(request, "/^(?:", ")$/"));
	else if (request->filter != NULL)
		test_plan_add(request, plan, "--filter=%s", request->filter);
	if (request->suite != NULL)
		test_plan_add(request, plan, "--testsuite=%s", request->suite);
	if (request->file != NULL)
		test_plan_add(request, plan, "%s", request->file);
	plan->report = request->report;
	plan->progress = request->progress;
	return true;
}

const struct test_runner phpunit_runner = {
	.name = "phpunit",
	.needs = "phpunit.xml or vendor/bin/phpunit",
	.missing = "composer install brings the project's own, Debian's package phpunit the system's",
	.files = "*Test.php *.phpt",
	.detect = phpunit_detect,
	.is_root = phpunit_is_root,
	.plan = phpunit_plan,
	.parse = test_parse_phpunit,
};
