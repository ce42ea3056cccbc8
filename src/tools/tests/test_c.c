/* test_c: meson, ctest and make, mostly for C; what is built there is brought up to date first. */
#include "base/clock.h"
#include "tools/tests/run_tests.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BUILD_FOLDERS \
	"build builddir _build out build/debug build/release cmake-build-debug"
#define MAKEFILES "GNUmakefile makefile Makefile"

/*
 * Where PROJECT is built already, which SIGN tells, if we may write there; else a folder in
 * the private home: nobody asked for one in the workspace. *READY: it is set up.
 */
static const char *find_build(const struct test_project *project, const char *sign,
			      const char *runner, bool *ready)
{
	struct str rest = str_of(BUILD_FOLDERS), word;
	const char *build;
	char path[PATH_MAX];

	while (str_next_word(&rest, &word)) {
		const char *folder = arena_copy(project->arena, word);

		(void)snprintf(path, sizeof(path), "%s/%s", project->folder, folder);
		if (test_project_holder(project, folder, sign) == NULL ||
		    access(path, W_OK) < 0)
			continue;
		*ready = true;
		return arena_copy(project->arena, str_of(path));
	}
	build = test_project_build(project, runner);
	(void)snprintf(path, sizeof(path), "%s/%s", build, sign);
	*ready = access(path, F_OK) == 0;
	return build;
}

static const char *meson_detect(const struct test_project *project)
{
	return test_project_first(project, "meson.build");
}

/* Add each test to run again, once. */
static void add_selected(const struct test_request *request, struct test_plan *plan)
{
	const struct test_report *again = request->again;

	for (size_t i = 0; i < again->count; i++) {
		const char *select = again->failures[i].select;
		bool known = select == NULL || select[0] == '-';

		for (size_t j = 0; j < i && !known; j++)
			known = again->failures[j].select != NULL &&
				strcmp(again->failures[j].select, select) == 0;
		if (!known)
			test_plan_add(request, plan, "%s", select);
	}
}

static bool meson_plan(const struct test_request *request, struct test_plan *plan,
		       struct buf *sentence)
{
	bool ready;
	const char *build = find_build(request->project, "meson-private/coredata.dat",
				       "meson", &ready);
	struct buf report;

	(void)sentence;
	if (!ready) {
		test_plan_step(request, plan, "meson");
		test_plan_add(request, plan, "setup");
		test_plan_add(request, plan, "%s", build);
		test_plan_add(request, plan, "%s", request->project->folder);
	}
	test_plan_step(request, plan, "meson");
	test_plan_add(request, plan, "test");
	test_plan_add(request, plan, "-C");
	test_plan_add(request, plan, "%s", build);
	test_plan_add(request, plan, "--print-errorlogs");
	if (request->suite != NULL)
		test_plan_add(request, plan, "--suite=%s", request->suite);
	if (request->again != NULL)
		add_selected(request, plan);
	else if (request->filter != NULL)
		test_plan_add(request, plan, "%s", request->filter);
	buf_init(&report, PATH_MAX);
	(void)buf_addf(&report, "%s/meson-logs/testlog.junit.xml", build);
	plan->report = arena_copy(request->project->arena, buf_str(&report));
	buf_fini(&report);
	return true;
}

static const char *ctest_detect(const struct test_project *project)
{
	struct str rest = str_of(BUILD_FOLDERS), word;

	if (str_find(test_project_read(project, "CMakeLists.txt"), STR("enable_testing"),
		     0) != (size_t)-1 ||
	    str_find(test_project_read(project, "CMakeLists.txt"), STR("include(CTest)"),
		     0) != (size_t)-1)
		return "CMakeLists.txt";
	while (str_next_word(&rest, &word)) {
		if (test_project_holder(project, arena_copy(project->arena, word),
					"CTestTestfile.cmake") != NULL)
			return "CTestTestfile.cmake";
	}
	return NULL;
}

static bool ctest_plan(const struct test_request *request, struct test_plan *plan,
		       struct buf *sentence)
{
	const struct test_project *project = request->project;
	bool ready;
	const char *build = find_build(project, "CMakeCache.txt", "ctest", &ready);

	(void)sentence;
	if (!ready) {
		test_plan_step(request, plan, "cmake");
		test_plan_add(request, plan, "-S%s", project->folder);
		test_plan_add(request, plan, "-B%s", build);
	}
	if (request->again == NULL) {
		test_plan_step(request, plan, "cmake");
		test_plan_add(request, plan, "--build");
		test_plan_add(request, plan, "%s", build);
		test_plan_add(request, plan, "--parallel");
		test_plan_add(request, plan, "%u", cores_usable());
	}
	test_plan_step(request, plan, "ctest");
	test_plan_add(request, plan, "--test-dir");
	test_plan_add(request, plan, "%s", build);
	test_plan_add(request, plan, "--output-on-failure");
	test_plan_add(request, plan, "--test-output-size-passed");
	test_plan_add(request, plan, "%d", 64 << 10);
	test_plan_add(request, plan, "--output-junit");
	test_plan_add(request, plan, "%s", request->report);
	plan->report = request->report;
	if (request->suite != NULL) {
		test_plan_add(request, plan, "-L");
		test_plan_add(request, plan, "%s", request->suite);
	}
	if (request->again != NULL || request->filter != NULL) {
		test_plan_add(request, plan, "-R");
		test_plan_add(request, plan, "%s",
			      request->again != NULL ? test_plan_names(request, "^(", ")$")
						     : request->filter);
	}
	return true;
}

/* May a target of this name be named? Only those that test: "deploy" is none of ours. */
static bool is_test_target(struct str name)
{
	bool tests = false;

	for (size_t i = 0; i < name.size; i++) {
		struct str rest = str_part(name, i, SIZE_MAX);

		if (!isalnum((unsigned char)name.data[i]) &&
		    (name.data[i] == '\0' || strchr("_.-/", name.data[i]) == NULL))
			return false;
		tests |= str_starts(rest, STR("test")) ||
			 str_starts(rest, STR("check")) || str_starts(rest, STR("spec"));
	}
	return tests && name.data[0] != '-';
}

/* Has the makefile TEXT the target NAME? With NAME NULL its test targets are put in ALL. */
static bool has_target(struct str text, const char *name, struct buf *all)
{
	struct str line, word;

	while (str_next_line(&text, &line)) {
		size_t colon = str_find(line, STR(":"), 0);
		struct str names = str_part(line, 0, colon);

		if (colon == (size_t)-1 || line.data[0] == '\t' || line.data[0] == '.' ||
		    str_starts(str_part(line, colon, 2), STR(":=")))
			continue;
		while (str_next_word(&names, &word)) {
			if (name != NULL && str_is(word, name))
				return true;
			if (name == NULL && is_test_target(word))
				(void)buf_addf(all, "%s%.*s", all->size > 0 ? ", " : "",
					       (int)word.size, word.data);
		}
	}
	return false;
}

static const char *default_target(struct str text)
{
	static const char *const names[] = {"test", "check", "tests"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (has_target(text, names[i], NULL))
			return names[i];
	}
	return NULL;
}

static const char *make_detect(const struct test_project *project)
{
	const char *name = test_project_first(project, MAKEFILES);

	return name != NULL && default_target(test_project_read(project, name)) != NULL
		       ? name
		       : NULL;
}

static bool make_plan(const struct test_request *request, struct test_plan *plan,
		      struct buf *sentence)
{
	const char *name = test_project_first(request->project, MAKEFILES);
	struct str text =
		name != NULL ? test_project_read(request->project, name) : STR("");
	const char *target = request->suite != NULL ? request->suite : default_target(text);
	struct buf all;

	if (target == NULL || !is_test_target(str_of(target)) ||
	    !has_target(text, target, NULL)) {
		buf_init(&all, 4096);
		(void)has_target(text, NULL, &all);
		(void)buf_addf(sentence,
			       "make runs a target of the makefile that tests, by its name: "
			       "`suite` may be %s.",
			       all.size > 0 ? all.data
					    : "none, for there is no such target");
		buf_fini(&all);
		return false;
	}
	test_plan_step(request, plan, "make");
	test_plan_add(request, plan, "%s", target);
	return true;
}

const struct test_runner meson_runner = {
	.name = "meson",
	.needs = "meson.build",
	.missing = "Debian's packages meson and ninja-build have it",
	.no_file = "meson knows tests by name: use `filter` with one",
	.detect = meson_detect,
	.plan = meson_plan,
	.parse = test_parse_meson,
};

const struct test_runner ctest_runner = {
	.name = "ctest",
	.needs = "CMakeLists.txt with enable_testing",
	.missing = "Debian's package cmake has it",
	.no_file = "ctest knows tests by name: use `filter` with one",
	.detect = ctest_detect,
	.plan = ctest_plan,
	.parse = test_parse_ctest,
};

const struct test_runner make_runner = {
	.name = "make",
	.needs = "a makefile with the target test or check",
	.missing = "Debian's package make has it",
	.no_file = "make runs whole targets: use `suite` with the name of one",
	.no_filter = "make runs whole targets: use `suite` with the name of one",
	.yields = true,
	.no_again = true,
	.detect = make_detect,
	.plan = make_plan,
	.parse = test_parse_any,
};
