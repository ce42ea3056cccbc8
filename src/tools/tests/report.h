/*
 * report: what one run said of its tests: how many passed, failed and were skipped, and
 * of the failed ones the name, the place and the words. The parsers (report.h) fill it
 * from bytes that any program may have written, so everything in it has a ceiling.
 */
#pragma once

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* Kept by name; what is beyond is counted only. */
	TEST_FAILURES_MAX = 1000,
	/* Failures whose words are kept: more are not shown (run_tests). */
	TEST_TEXTS_MAX = 10,
	/* Bytes of words per failure, before they are cut into lines. */
	TEST_TEXT_MAX = 16 << 10,
	TEST_NAME_MAX = 300,
};

enum test_state { TEST_PASSED = 1, TEST_FAILED, TEST_SKIPPED };

/* One test as a parser has seen it; all but name and state may be empty. */
struct test_seen {
	enum test_state state;
	struct str group;  /* put before the name, with " / " between */
	struct str name;   /* for people */
	struct str select; /* by which its runner can run it again */
	struct str file;   /* else searched in the text */
	uint64_t line;
	struct str text;
};

struct test_failure {
	const char *name;
	const char *select; /* NULL: it cannot be run alone */
	const char *file; /* relative to the workspace where it lies there; NULL: unknown */
	uint64_t line;    /* 0: unknown */
	const char *text; /* "" when there are no words, or none are kept */
	bool passed_again, failed_again;
};

struct test_report {
	struct arena arena;
	const char *folder; /* absolute: the runner's; or NULL */
	const char *prefix; /* of FOLDER in the workspace: "" or "sub/"; or NULL */
	uint64_t passed, failed, skipped;
	char last[TEST_NAME_MAX + 1]; /* name of the test that was added last */
	struct test_failure *failures;
	size_t count, room;
	/* The run before: its failures are told how they fare in this one. NULL: none. */
	struct test_report *first;
};

void test_report_init(struct test_report *report, const char *folder, const char *prefix);
void test_report_fini(struct test_report *report);
void test_report_add(struct test_report *report, const struct test_seen *seen);
/* The words of FAILURE, when it has none yet; the place too. */
void test_report_add_text(struct test_report *report, struct test_failure *failure,
			  struct str text);
/* Where FAILURE is, when its reader knows better than its words. */
void test_report_place(struct test_report *report, struct test_failure *failure,
		       struct str file, uint64_t line);
uint64_t test_report_total(const struct test_report *report);

/*
 * The first place in a source file that TEXT names: "a/b.c:12", "at t/a.t line 3",
 * "File "a.py", line 3". Absolute ones outside FOLDER (NULL: all) are passed over. False:
 * none.
 */
bool report_place_find(struct str text, const char *folder, struct str *file,
		       uint64_t *line);

/*
 * Readers of what test runners say, pure: bytes in, a report out. Whatever is no word
 * about a test is passed over; nothing here can fail.
 */

/* The output and the files of a runner. */
struct test_output {
	struct str out, error; /* what it printed */
	struct str report;     /* the file it was told to write; empty: it wrote none */
	struct str progress;   /* another one, that it writes as it goes; or empty */
	const char *module;    /* of Go: what packages' names begin with; or NULL */
};

/*
 * JUnit XML, as its writers have it. Without a test in it, as long as the runner goes on or
 * when it was ended, what it has printed on the way tells.
 */
void report_parse_phpunit(const struct test_output *output, struct test_report *report);
void report_parse_pytest(const struct test_output *output, struct test_report *report);
void report_parse_ctest(const struct test_output *output, struct test_report *report);
void report_parse_meson(const struct test_output *output, struct test_report *report);

/* JUnit XML of any program. */
void report_junit_text(struct str text, struct str group, struct test_report *report);

/* The messages of phpunit's --log-teamcity, and what pytest prints as it goes. */
void report_teamcity_text(struct str text, struct test_report *report);
void report_pytest_text(struct str text, struct test_report *report);

/* TAP, and what prove prints around it. */
void report_parse_tap(const struct test_output *output, struct test_report *report);
void report_parse_prove(const struct test_output *output, struct test_report *report);
void report_tap_text(struct str text, struct str group, struct test_report *report);

/* The output of cargo test. */
void report_cargo_text(struct str text, struct str group, struct test_report *report);

/*
 * Lines as the test libraries of C print them (cmocka and GoogleTest, Check, Unity), those
 * of automake, and the progress of ctest and meson. SELECT is that of every test in there.
 */
void report_lines_text(struct str text, struct str group, struct str select,
		       struct test_report *report);
/* Whichever of TAP, these lines, cargo's, and JUnit XML tells of most tests. */
void report_any_text(struct str text, struct str group, struct str select,
		     struct test_report *report);
void report_parse_any(const struct test_output *output, struct test_report *report);
