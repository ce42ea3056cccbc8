/*
 * run_tests: run the tests of a project by its own runner and say which failed, where and
 * why. Its exit code alone decides whether they passed; what failed is run once more.
 */
#include "tools/tests/run_tests.h"

#include "base/clock.h"
#include "base/fd.h"
#include "tool/spill.h"
#include "tools/shown.h"
#include "tools/tools.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN_TESTS_TIMEOUT_S 600
/* As long as a job may take: a whole suite may be that slow, and nothing else waits for it. */
#define RUN_TESTS_TIMEOUT_MAX_S 7200

enum { TEXT_ARGUMENT_MAX = 1000 }; /* of a name, or a pattern of names */

static const struct tool_param run_tests_params[] = {
	{"file", PARAM_PATH, false, "Test file or folder to run; all unless told",
	 .aliases = "path file_path test_file", .min = 1, .max = PATH_MAX},
	{"filter", PARAM_TEXT, false, "Run the tests whose name fits, as the runner has it",
	 .aliases = "pattern name test", .min = 1, .max = TEXT_ARGUMENT_MAX},
	{"suite", PARAM_TEXT, false,
	 "A suite: phpunit's, a marker of pytest, a label of ctest, a target of make, a package "
	 "of Go",
	 .aliases = "testsuite target", .min = 1, .max = TEXT_ARGUMENT_MAX},
	{"runner", PARAM_CHOICE, false, "Runner to use; found in the workspace unless told",
	 .choices = "auto phpunit pytest go cargo node jest vitest mocha meson ctest prove make",
	 .initial = "\"auto\""},
	/* Its own default: suites take longer than commands (the policy's wall_s). */
	{"timeout_s", PARAM_SECONDS, false, "Seconds until it is ended",
	 .aliases = "timeout", .initial = SHOWN_NUMBER(RUN_TESTS_TIMEOUT_S)},
	{"rerun_failed", PARAM_BOOLEAN, false,
	 "Run failed tests once more: those that then pass are flaky", .initial = "true"},
	{0},
};

/* No value may look like an option, or end a line of a log. */
static bool check_shape(const struct call *call, const char *name, struct tool_result *result)
{
	struct str text = call_str(call, name);

	if (text.size > 0 && text.data[0] == '-')
		(void)tool_fail(
			result,
			"`%s` begins with a dash, which a test runner would take for an "
			"option. Options cannot be given, and nothing is read from standard "
			"input: leave `%s` out to run all, or give it as plain text.",
			name, name);
	else if (text.size > 0 && (memchr(text.data, '\0', text.size) != NULL ||
				   memchr(text.data, '\n', text.size) != NULL))
		(void)tool_fail(result, "`%s` holds a line end or a NUL byte.", name);
	else
		return true;
	return false;
}

static bool check_taken(const struct call *call, const char *name, const char *not_taken,
			const char *runner, struct tool_result *result)
{
	if (not_taken == NULL || call_str(call, name).size == 0)
		return true;
	(void)tool_fail(result, "`%s` does not go with %s: %s.", name, runner, not_taken);
	return false;
}

static bool check_texts(const struct call *call, const struct test_runner *runner,
			struct tool_result *result)
{
	return check_taken(call, "filter", runner->no_filter, runner->name, result) &&
	       check_taken(call, "suite", runner->no_suite, runner->name, result);
}

/* All that one call holds. */
struct tests {
	struct call *call;
	struct tool_result *result;
	struct arena arena;
	struct test_choice choice;
	struct test_request request;
	struct test_ran first, again;
	struct test_log log;
	struct buf spills;   /* folder of the logs */
	struct buf report;   /* folder of the report, and then its name in there */
	struct buf progress; /* the same of what is written on the way */
	char *folder;
	bool ran_again;
};

/* A folder that no other call of this cell knows, for the file that the runner writes. */
static bool make_report(struct tests *tests, struct err *err)
{
	struct buf *path = &tests->report;

	(void)buf_addf(path, "%s/", spill_folder(tests->call->environment, &tests->spills));
	if (!fd_make_folders(path->data, err))
		return false;
	(void)buf_adds(path, "tests-XXXXXX");
	if (mkdtemp(path->data) == NULL)
		return err_set(err, errno, "%s: %s", path->data, strerror(errno));
	tests->folder = memory_copy(path->data);
	(void)buf_addf(&tests->progress, "%s/progress", path->data);
	(void)buf_adds(path, "/report");
	return true;
}

static enum result_status start_failed(const struct tests *tests,
				       const struct test_ran *ran, const struct err *err)
{
	const struct test_runner *runner = tests->choice.runner;

	if (err->code == ENOENT)
		return tool_fail(tests->result,
				 "%s is not there, so %s cannot run the tests (%s): %s.",
				 ran->argv[0], runner->name,
				 tests->choice.because != NULL ? tests->choice.because
							       : "asked for",
				 runner->missing);
	return tool_fail(tests->result, "The tests did not run. %s", err->text);
}

/* Is a second run of what failed of use? */
static bool wants_again(const struct tests *tests)
{
	const struct test_ran *first = &tests->first;
	size_t can = 0;

	if (!call_flag(tests->call, "rerun_failed") || first->ending != PROGRAM_ENDED ||
	    first->exit_code == 0 || first->step + 1 < first->steps ||
	    first->report.failed > TEST_AGAIN_MAX || call_stopped(tests->call))
		return false;
	for (size_t i = 0; i < first->report.count; i++)
		can += tests->choice.runner->no_again ||
		       first->report.failures[i].select != NULL ||
		       first->report.failures[i].file != NULL;
	return can > 0;
}

static void run_again(struct tests *tests)
{
	struct test_plan plan = {0};
	struct buf sentence;
	struct err err;

	buf_init(&sentence, 4096);
	test_ran_init(&tests->again, &tests->choice);
	tests->again.report.first = &tests->first.report;
	tests->request.again = &tests->first.report;
	tests->ran_again = tests->choice.runner->plan(&tests->request, &plan, &sentence) &&
			   test_run(tests->call, &tests->choice, &plan, &tests->log,
				    &tests->again, &err);
	buf_fini(&sentence);
}

static enum result_status run_tests(struct tests *tests)
{
	struct tool_result *result = tests->result;
	struct test_plan plan = {0};
	struct err err;
	struct buf sentence;
	bool ok;

	if (!make_report(tests, &err))
		return tool_fail(result, "The tests did not run. %s", err.text);
	tests->request = (struct test_request){
		.project = &tests->choice.project,
		.file = tests->choice.file,
		.file_is_folder = tests->choice.file_is_folder,
		.filter = call_text(tests->call, "filter"),
		.suite = call_text(tests->call, "suite"),
		.report = tests->report.data,
		.progress = tests->progress.data,
	};
	buf_init(&sentence, 8192);
	ok = tests->choice.runner->plan(&tests->request, &plan, &sentence);
	if (!ok)
		(void)tool_fail(result, "%s", sentence.data);
	buf_fini(&sentence);
	if (!ok)
		return result->status;
	tests->log.fd = spill_open(tests->spills.data);
	if (!test_run(tests->call, &tests->choice, &plan, &tests->log, &tests->first, &err))
		return start_failed(tests, &tests->first, &err);
	if (wants_again(tests))
		run_again(tests);
	const struct test_answer answer = {
		.call = tests->call,
		.choice = &tests->choice,
		.first = &tests->first,
		.again = tests->ran_again ? &tests->again : NULL,
		.log = &tests->log,
		.log_folder = tests->spills.data,
		.filter = tests->request.filter,
		.suite = tests->request.suite,
	};
	test_tell(&answer, result);
	return result->status;
}

static enum result_status run_tests_execute(struct call *call, struct tool_result *result)
{
	struct tests *tests = memory_alloc(sizeof(*tests));
	enum result_status status = RESULT_FAILED;

	tests->call = call;
	tests->result = result;
	tests->log.fd = -1;
	arena_init(&tests->arena);
	buf_init(&tests->spills, PATH_MAX);
	buf_init(&tests->report, PATH_MAX);
	buf_init(&tests->progress, PATH_MAX);
	if (check_shape(call, "filter", result) && check_shape(call, "suite", result) &&
	    test_choose(call, &tests->arena, &tests->choice, result) &&
	    check_texts(call, tests->choice.runner, result)) {
		test_ran_init(&tests->first, &tests->choice);
		status = run_tests(tests);
	}
	folder_remove(tests->folder);
	test_ran_fini(&tests->first);
	test_ran_fini(&tests->again);
	fd_close(&tests->log.fd);
	free(tests->folder);
	buf_fini(&tests->spills);
	buf_fini(&tests->report);
	buf_fini(&tests->progress);
	arena_fini(&tests->arena);
	free(tests);
	return status;
}

const struct tool run_tests_tool = {
	.name = "run_tests",
	.description = "Run the project's tests by their own runner. Says how many passed, "
		       "which failed, where and why, and which of these are flaky.",
	.example = "{\"file\": \"tests/test_sums.py\", \"filter\": \"zero\"}",
	.aliases = "test run_test",
	.params = run_tests_params,
	.effects = EFFECT_RUNS,
	.timeout_s = RUN_TESTS_TIMEOUT_S,
	.timeout_max_s = RUN_TESTS_TIMEOUT_MAX_S,
	.answers = true,
	.execute = run_tests_execute,
};
