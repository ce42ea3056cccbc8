/* test_js: node --test, jest, vitest and mocha. */
#include "base/path.h"
#include "base/value.h"
#include "tools/tests/report.h"
#include "tools/tests/run_tests.h"

#include <string.h>

#define TEST_FILES                                                                   \
	"*.test.js *.test.mjs *.test.cjs *.test.ts *.test.tsx *.test.jsx *.spec.js " \
	"*.spec.mjs *.spec.ts *.spec.tsx *_test.js *_test.mjs *-test.js *-test.mjs test-*.js"

enum {
	WORDS_MAX = 16 << 10,
	/* As a tree in memory it takes many times as much. */
	JSON_MAX = 6 << 20,
};

/* The words why ONE failed, or the whole file did. */
static void add_messages(const struct value *one, struct buf *words)
{
	const struct value *messages = value_member(one, "failureMessages");

	for (size_t i = 0; i < value_count(messages); i++) {
		(void)buf_addstr(words, value_str(value_item(messages, i)));
		(void)buf_end_line(words);
	}
}

static void add_assertion(const struct value *one, struct str file,
			  struct test_report *report)
{
	struct str status = value_str(value_member(one, "status"));
	struct str name = value_str(value_member(one, "fullName"));
	struct test_seen seen = {
		.state = TEST_SKIPPED,
		.name = name.size > 0 ? name : value_str(value_member(one, "title")),
	};
	struct buf words;

	buf_init(&words, WORDS_MAX);
	seen.state = str_is(status, "passed")   ? TEST_PASSED
		     : str_is(status, "failed") ? TEST_FAILED
						: TEST_SKIPPED;
	if (seen.state == TEST_FAILED) {
		add_messages(one, &words);
		seen.text = buf_str(&words);
		seen.file = file;
		seen.line = (uint64_t)value_integer(
			value_member(value_member(one, "location"), "line"));
	}
	test_report_add(report, &seen);
	buf_fini(&words);
}

static void add_unloaded(const struct value *file, struct str name,
			 struct test_report *report)
{
	const char *shown = value_text(value_member(file, "name"));

	if (shown != NULL && report->folder != NULL)
		shown = path_relative(shown, report->folder);
	test_report_add(report, &(struct test_seen){
					.state = TEST_FAILED,
					.name = str_of(shown),
					.file = name,
					.text = value_str(value_member(file, "message")),
				});
}

/* One file, and its tests. */
static void add_file(const struct value *file, struct test_report *report)
{
	const struct value *list = value_member(file, "assertionResults");
	struct str name = value_str(value_member(file, "name"));
	bool failed = str_is(value_str(value_member(file, "status")), "failed");

	for (size_t i = 0; i < value_count(list); i++)
		add_assertion(value_item(list, i), name, report);
	/* It could not even be loaded. */
	if (failed && value_count(list) == 0)
		add_unloaded(file, name, report);
}

/* The JSON of jest, which vitest writes too. */
static void parse_jest(const struct test_output *output, struct test_report *report)
{
	auto_value struct value *whole = NULL;
	const struct value *files;

	if (output->report.size > JSON_MAX || !value_parse(output->report, 0, &whole, NULL))
		return;
	files = value_member(whole, "testResults");
	for (size_t i = 0; i < value_count(files); i++)
		add_file(value_item(files, i), report);
}

/* One list of mocha's JSON, of tests that all ended in STATE. */
static void add_mocha(const struct value *list, enum test_state state,
		      struct test_report *report)
{
	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *one = value_item(list, i);
		const struct value *error = value_member(one, "err");
		struct str name = value_str(value_member(one, "fullTitle"));
		struct str stack = value_str(value_member(error, "stack"));
		struct test_seen seen = {.state = state, .name = name};

		if (state == TEST_FAILED) {
			/* Its stack begins with the message, and names the line. */
			seen.text = stack.size > 0
					    ? stack
					    : value_str(value_member(error, "message"));
			/* A hook is no test: it runs with the tests of its file. */
			if (str_find(name, STR("\" hook"), 0) == (size_t)-1)
				seen.select = name;
			if (!test_place_find(seen.text, report->folder, &seen.file,
					     &seen.line))
				seen.file = value_str(value_member(one, "file"));
		}
		test_report_add(report, &seen);
	}
}

/* The JSON of mocha; older ones than 9.2 print it behind what the tests have printed. */
static void parse_mocha(const struct test_output *output, struct test_report *report)
{
	auto_value struct value *whole = NULL;
	struct str text = output->report.size > 0 ? output->report : output->out;
	const size_t at = str_find(text, STR("{\n  \"stats\": {"), 0);

	if (at == (size_t)-1)
		return;
	text = str_part(text, at, text.size);
	if (text.size > JSON_MAX || !value_parse(text, 0, &whole, NULL))
		return;
	add_mocha(value_member(whole, "passes"), TEST_PASSED, report);
	add_mocha(value_member(whole, "failures"), TEST_FAILED, report);
	add_mocha(value_member(whole, "pending"), TEST_SKIPPED, report);
}

/* Does package.json speak of WORD, as what is needed or as a script's program? */
static bool package_names(const struct test_project *project, const char *word)
{
	static const char *const kinds[] = {"dependencies", "devDependencies",
					    "optionalDependencies"};
	struct str text = test_project_read(project, "package.json");
	auto_value struct value *package = NULL;
	struct str script;

	if (text.size == 0 || !value_parse(text, 0, &package, NULL))
		return false;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (value_member(value_member(package, kinds[i]), word) != NULL)
			return true;
	}
	script = value_str(value_member(value_member(package, "scripts"), "test"));
	return str_find(script, str_of(word), 0) != (size_t)-1;
}

static const char *jest_detect(const struct test_project *project)
{
	const char *name =
		test_project_first(project,
				   "jest.config.js jest.config.mjs jest.config.cjs jest.config.ts "
				   "jest.config.json");

	if (name == NULL && package_names(project, "jest"))
		name = "package.json";
	return name;
}

static const char *vitest_detect(const struct test_project *project)
{
	const char *name =
		test_project_first(project,
				   "vitest.config.js vitest.config.mjs vitest.config.ts "
				   "vitest.config.mts vitest.workspace.ts");

	if (name == NULL && package_names(project, "vitest"))
		name = "package.json";
	return name;
}

static const char *mocha_detect(const struct test_project *project)
{
	const char *name =
		test_project_first(project, ".mocharc.js .mocharc.cjs .mocharc.mjs "
					    ".mocharc.yaml .mocharc.yml .mocharc.json "
					    ".mocharc.jsonc");

	if (name == NULL && package_names(project, "mocha"))
		name = "package.json";
	return name;
}

static const char *node_detect(const struct test_project *project)
{
	const char *name;

	if (jest_detect(project) != NULL || vitest_detect(project) != NULL ||
	    mocha_detect(project) != NULL)
		return NULL;
	if (package_names(project, "node --test"))
		return "package.json";
	name = test_project_fits(project, "test", TEST_FILES);
	return name != NULL ? name : test_project_fits(project, ".", TEST_FILES);
}

static bool node_plan(const struct test_request *request, struct test_plan *plan,
		      struct buf *sentence)
{
	(void)sentence;
	test_plan_step(request, plan, "node");
	test_plan_add(request, plan, "--test");
	test_plan_add(request, plan, "--test-reporter=tap");
	if (request->again != NULL) {
		test_plan_files(request, plan);
		return true;
	}
	if (request->filter != NULL)
		test_plan_add(request, plan, "--test-name-pattern=%s", request->filter);
	if (request->file != NULL)
		test_plan_add(request, plan, "%s", request->file);
	return true;
}

static bool jest_plan(const struct test_request *request, struct test_plan *plan,
		      struct buf *sentence)
{
	(void)sentence;
	test_plan_step(request, plan, "node_modules/.bin/jest");
	test_plan_add(request, plan, "--ci");
	test_plan_add(request, plan, "--json");
	test_plan_add(request, plan, "--outputFile=%s", request->report);
	plan->report = request->report;
	if (request->suite != NULL) {
		test_plan_add(request, plan, "--selectProjects");
		test_plan_add(request, plan, "%s", request->suite);
	}
	if (request->again == NULL && request->filter != NULL)
		test_plan_add(request, plan, "--testNamePattern=%s", request->filter);
	/* It takes all that follows for files. */
	if (request->again != NULL || (request->file != NULL && !request->file_is_folder))
		test_plan_add(request, plan, "--runTestsByPath");
	if (request->again != NULL)
		test_plan_files(request, plan);
	else if (request->file != NULL)
		test_plan_add(request, plan, "%s", request->file);
	return true;
}

static bool vitest_plan(const struct test_request *request, struct test_plan *plan,
			struct buf *sentence)
{
	(void)sentence;
	test_plan_step(request, plan, "node_modules/.bin/vitest");
	test_plan_add(request, plan, "run");
	test_plan_add(request, plan, "--reporter=default");
	test_plan_add(request, plan, "--reporter=json");
	test_plan_add(request, plan, "--outputFile.json=%s", request->report);
	plan->report = request->report;
	if (request->suite != NULL)
		test_plan_add(request, plan, "--project=%s", request->suite);
	if (request->again != NULL) {
		test_plan_files(request, plan);
		return true;
	}
	if (request->filter != NULL)
		test_plan_add(request, plan, "--testNamePattern=%s", request->filter);
	if (request->file != NULL)
		test_plan_add(request, plan, "%s", request->file);
	return true;
}

static bool mocha_plan(const struct test_request *request, struct test_plan *plan,
		       struct buf *sentence)
{
	(void)sentence;
	test_plan_step(request, plan, "node_modules/.bin/mocha");
	test_plan_add(request, plan, "--reporter=json");
	test_plan_add(request, plan, "--reporter-option=output=%s", request->report);
	plan->report = request->report;
	/* Files would be added to those that the project's settings name: names are exact. */
	if (request->again != NULL) {
		test_plan_add(request, plan, "--grep=%s",
			      test_plan_names(request, "^(?:", ")$"));
		return true;
	}
	if (request->filter != NULL)
		test_plan_add(request, plan, "--grep=%s", request->filter);
	if (request->file != NULL)
		test_plan_add(request, plan, "%s", request->file);
	return true;
}

const struct test_runner node_runner = {
	.name = "node",
	.needs = "package.json whose test script is node --test, or files like test/a.test.js",
	.missing = "install Node.js 18 or newer, or Debian's package nodejs",
	.files = TEST_FILES,
	.no_folder = "node --test takes one file here; without `file` it finds all",
	.no_suite = "node --test has no suites: use `filter` with the suite's name",
	.detect = node_detect,
	.plan = node_plan,
	.parse = test_parse_tap,
};

const struct test_runner jest_runner = {
	.name = "jest",
	.needs = "package.json that needs jest",
	.missing = "npm ci in the project's folder brings it",
	.files = TEST_FILES,
	.detect = jest_detect,
	.plan = jest_plan,
	.parse = parse_jest,
};

const struct test_runner vitest_runner = {
	.name = "vitest",
	.needs = "package.json that needs vitest",
	.missing = "npm ci in the project's folder brings it",
	.files = TEST_FILES,
	.detect = vitest_detect,
	.plan = vitest_plan,
	.parse = parse_jest,
};

const struct test_runner mocha_runner = {
	.name = "mocha",
	.needs = ".mocharc.* or package.json that needs mocha",
	.missing = "npm ci in the project's folder brings it",
	.files = TEST_FILES,
	.no_suite = "mocha has no suites: use `filter` with the suite's name",
	.detect = mocha_detect,
	.plan = mocha_plan,
	.parse = parse_mocha,
};
