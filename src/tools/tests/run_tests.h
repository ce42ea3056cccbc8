/*
 * run_tests: the programs that run tests, one row each: how a project shows that it uses
 * one, the argument vectors that run its tests, and the reader of what it says (report.h).
 * Never a shell text: every value is one argument, and none begins with a dash.
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
	/* Failed tests that are run again; when more fail it is no chance. */
	TEST_AGAIN_MAX = 100,
};

/* A folder with tests that one runner runs. */
struct test_project {
	struct call *call;
	struct arena *arena;
	const char *folder; /* absolute */
};

/* Is NAME (relative) there, whatever it is? */
bool test_project_has(const struct test_project *project, const char *name);
/* The first of the blank-separated NAMES that is there, or NULL. */
const char *test_project_first(const struct test_project *project, const char *names);
/* The content of NAME, empty when it is not there, no text file, or too large. */
struct str test_project_read(const struct test_project *project, const char *name);
/* A file of the folder NAME ("." for itself) that fits one of the blank-separated PATTERNS. */
const char *test_project_fits(const struct test_project *project, const char *name,
			      const char *patterns);
/*
 * The same in the folder NAME of a folder of the project ("pkg/tests", "src/pkg/tests"): the path
 * of that folder, or NULL. A folder that holds one of the blank-separated OWN is a project itself,
 * and so are those that packages of others lie in.
 */
const char *test_project_fits_below(const struct test_project *project, const char *name,
				    const char *patterns, const char *own);
/* The first folder of FOLDER, "." for the project, that holds NAME ("build" with "x.txt"). */
const char *test_project_holder(const struct test_project *project, const char *folder,
				const char *name);

/* Append the names of the folders right below that hold one of NAMES, ", " between. */
bool test_project_writable(const struct test_project *project);
/* A folder of its own below the private home, for what is built: made when missing. */
const char *test_project_build(const struct test_project *project, const char *runner);

/* The request for a run; its texts are checked already. */
struct test_request {
	const struct test_project *project;
	const char *file; /* relative to the project's folder, or NULL */
	bool file_is_folder;
	const char *filter, *suite; /* or NULL */
	/* Its failures are to be run again, and nothing else; NULL: the first run. */
	const struct test_report *again;
	const char *report;   /* where the runner may leave a file for its parser */
	const char *progress; /* and one that it writes as it goes */
};

struct test_step {
	const char **argv; /* NULL-ended, in the arena */
	size_t count, room;
};

struct test_plan {
	struct test_step steps[TEST_STEPS_MAX]; /* the last one runs the tests */
	size_t count;
	const char *report;      /* absolute; removed before, read afterwards; or NULL */
	const char *progress;    /* the same of test_output.progress */
	const char *environment; /* one more variable "NAME=value", or NULL */
	const char *module;      /* test_output.module */
};

/* Begin a step, and add arguments to the last one. */
void test_plan_step(const struct test_request *request, struct test_plan *plan,
		    const char *program);
void test_plan_add(const struct test_request *request, struct test_plan *plan,
		   const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The failures to run again as one regular expression: "^(?:a|b)$" between the two texts. */
const char *test_plan_names(const struct test_request *request, const char *before,
			    const char *after);
/* Append TEXT with every character escaped that has a meaning in regular expressions. */
void run_tests_escape(struct str text, struct buf *out);
/* Add every file in which a test failed, once, absolute. */
void test_plan_files(const struct test_request *request, struct test_plan *plan);

struct test_runner {
	const char *name;
	const char *needs;   /* for people: what a project has that uses it */
	const char *missing; /* what to do when its program is not there */
	const char *files; /* blank-separated patterns: by its name a file holds tests */
	/* what to say when it takes no such argument; NULL: it takes it */
	const char *no_file, *no_folder, *no_filter, *no_suite;
	bool yields;   /* only when no other fits: it mostly calls one of them */
	bool no_again; /* a part of the tests cannot be run: all of them are */
	/* The name of what shows that the project uses it; NULL: it does not. */
	const char *(*detect)(const struct test_project *project);
	/* A folder or file (relative) that the project's settings name as tests; or NULL. */
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
