/* run_tests: what run_tests.c (the tool) hands to test_choose.c, test_run.c and test_tell.c. */
#pragma once
#include "process/program.h"
#include "tool/limits.h"
#include "tools/tests/test_runner.h"

#include <stdint.h>

struct test_choice {
	const struct test_runner *runner;
	struct test_project project;
	const char *prefix;  /* of the project's folder in the workspace: "" or "sub/" */
	const char *because; /* the name that shows it, or NULL when it was asked for */
	const char *file;    /* of the call, relative to the project's folder; or NULL */
	bool file_is_folder;
};

/* Choose the runner and the folder. False: RESULT says what was found instead. */
bool test_choose(struct call *call, struct arena *arena, struct test_choice *choice,
		 struct tool_result *result);

/* The result of one plan: one program after the other, until one fails. */
struct test_ran {
	struct test_report report;
	size_t step; /* the last that ran */
	size_t steps;
	const char *const *argv; /* of that step */
	enum program_ending ending;
	int exit_code, signal;
	int64_t began_ms;
	double seconds;
	unsigned left_processes;
	struct buf out, error; /* of that step */
	uint64_t out_total, error_total;
	struct limit_watch limits;
	struct program_run run; /* of that step, for limit_watch_tell */
};

/* The log of all programs of a call. */
struct test_log {
	int fd; /* -1: there is none */
	uint64_t bytes, dropped;
};

void test_ran_init(struct test_ran *ran, const struct test_choice *choice);
void test_ran_fini(struct test_ran *ran);
/*
 * Run PLAN and read what it says into RAN's report. False: a program could not be started
 * (ERR.code as of program_start, RAN->argv names it). A question that comes meanwhile is
 * answered with the results so far (test_tell_so_far).
 */
bool test_run(struct call *call, const struct test_choice *choice, struct test_plan *plan,
	      struct test_log *log, struct test_ran *ran, struct err *err);

struct test_answer {
	struct call *call;
	const struct test_choice *choice;
	struct test_ran *first;
	const struct test_ran *again; /* the failures' second run, or NULL */
	struct test_log *log;
	const char *log_folder;
	const char *filter, *suite;
};
/* Fill RESULT: status, text, details; keeps the log. */
void test_tell(const struct test_answer *answer, struct tool_result *result);
/*
 * Of a run that goes on as job JOB: SEEN is what can be read of it by now. ANSWER's `first` is
 * what runs; of a second run its report says so (`first`).
 */
void test_tell_so_far(const struct test_answer *answer, const struct test_report *seen,
		      int64_t job, struct tool_result *result);
