/*
 * run_tests: the programs that run tests, one row each: how a project shows that it uses
 * one, the argument vectors that run its tests, and the reader of its output (report.h).
 * No row makes a shell text: every value is one argument, and none begins with a dash.
 *
 * A runner is added as one `struct test_runner` in runners.c, one row in run_tests.c
 * and one in docs.
 *
 * A runner comes with recorded output in tests/fuzz/corpus/test_output/, a project in
 * tests/projects/ and cases in tests/runners/.
 */
#pragma once

#include "base/buf.h"
#include "base/memory.h"
#include "tool/call.h"
#include "tools/tests/report.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	TEST_STEPS_MAX = 3, /* configure, build, test */
	/* The most failed tests that are run again. More failures are no chance. */
	TEST_AGAIN_MAX = 100,
};

/* A folder with tests that one runner runs. */
struct test_project {
	struct call *call;
	struct arena *arena;
	const char *folder; /* absolute */
};

/* Does NAME (relative) exist, as an entry of any kind? */
bool test_project_has(const struct test_project *project, const char *name);
/* The first of the blank-separated NAMES that exists, or NULL. */
const char *test_project_first(const struct test_project *project, const char *names);
/*
 * The content of NAME; empty when NAME does not exist, is no text file, or is too large.
 */
struct str test_project_read(const struct test_project *project, const char *name);
/*
 * A file in the folder NAME (".": the project's folder) that fits one of the
 * blank-separated PATTERNS.
 */
const char *test_project_fits(const struct test_project *project, const char *name,
			      const char *patterns);
/*
 * The same for the folder NAME in a folder of the project ("pkg/tests", "src/pkg/tests").
 * Returns the path of that folder, or NULL. Skipped are folders with one of the
 * blank-separated OWN, which are projects themselves, and folders of installed packages.
 */
const char *test_project_fits_below(const struct test_project *project, const char *name,
				    const char *patterns, const char *own);

/* The request for a run; its texts are checked already. */
struct test_request {
	const struct test_project *project;
	const char *file; /* relative to the project's folder, or NULL */
	bool file_is_folder;
	const char *filter, *suite; /* or NULL */
	/* Run only its failures again; NULL: this is the first run. */
	const struct test_report *again;
	const char *report;   /* where the runner may write a file for its parser */
	const char *progress; /* where it may write another one during the run */
};

struct test_step {
	const char **argv; /* NULL-ended, in the arena */
	size_t count, room;
};

struct test_plan {
	struct test_step steps[TEST_STEPS_MAX]; /* the last one runs the tests */
	size_t count;
	/* absolute; removed before the run, read after it; or NULL */
	const char *report;
	const char *progress;    /* the same for test_output.progress */
	const char *environment; /* one more variable "NAME=value", or NULL */
	const char *module;      /* test_output.module */
};

struct test_runner {
	const char *name;
	const char *needs;   /* for people: what a project that uses the runner has */
	const char *missing; /* what to do when the runner's program is missing */
	/* blank-separated patterns for the names of files with tests */
	const char *files;
	/* the sentence when the runner does not take such an argument; NULL: it does */
	const char *no_file, *no_folder, *no_filter, *no_suite;
	/* used only when no other runner fits, because it usually calls one of them */
	bool yields;
	/*
	 * Does only the name of some file speak for the runner, so that another one that fits is
	 * meant? NULL: never.
	 */
	bool (*is_guess)(const struct test_project *project);
	const char *called_by; /* words of a makefile that calls a runner that is a guess */
	bool no_again;         /* it cannot run a part of the tests, so all are run */
	/*
	 * The name of the file that shows that the project uses the runner; NULL: it does
	 * not.
	 */
	const char *(*detect)(const struct test_project *project);
	/*
	 * Do the project's settings name FILE (relative), a folder or a file, as tests?
	 * May be NULL.
	 */
	bool (*is_root)(const struct test_project *project, const char *file);
	/* False: SENTENCE says what is wrong with the request, and what would work. */
	bool (*plan)(const struct test_request *request, struct test_plan *plan,
		     struct buf *sentence);
	void (*parse)(const struct test_output *output, struct test_report *report);
};

/* In the order in which they are named; ends with NULL. */
extern const struct test_runner *const test_runners[];
extern const struct test_runner phpunit_runner, ctest_runner, meson_runner, make_runner,
	prove_runner, pytest_runner, go_runner, cargo_runner, node_runner, jest_runner,
	vitest_runner, mocha_runner;

const struct test_runner *test_runner_find(const char *name);
