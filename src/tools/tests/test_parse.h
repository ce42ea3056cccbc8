/*
 * test_parse: readers of what test runners say, pure: bytes in, a report out. Whatever is no
 * word about a test is passed over; nothing here can fail.
 */
#pragma once
#include "base/str.h"
#include "tools/tests/test_report.h"

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
void test_parse_phpunit(const struct test_output *output, struct test_report *report);
void test_parse_pytest(const struct test_output *output, struct test_report *report);
void test_parse_ctest(const struct test_output *output, struct test_report *report);
void test_parse_meson(const struct test_output *output, struct test_report *report);

/* JUnit XML of any program. */
void test_junit_text(struct str text, struct str group, struct test_report *report);

/* The messages of phpunit's --log-teamcity, and what pytest prints as it goes. */
void test_teamcity_text(struct str text, struct test_report *report);
void test_pytest_text(struct str text, struct test_report *report);

/* TAP, and what prove prints around it. */
void test_parse_tap(const struct test_output *output, struct test_report *report);
void test_parse_prove(const struct test_output *output, struct test_report *report);
void test_tap_text(struct str text, struct str group, struct test_report *report);

/* The output of cargo test. */
void test_cargo_text(struct str text, struct str group, struct test_report *report);

/*
 * Lines as the test libraries of C print them (cmocka and GoogleTest, Check, Unity), those
 * of automake, and the progress of ctest and meson. SELECT is that of every test in there.
 */
void test_lines_text(struct str text, struct str group, struct str select,
		     struct test_report *report);
/* Whichever of TAP, these lines, cargo's, and JUnit XML tells of most tests. */
void test_any_text(struct str text, struct str group, struct str select,
		   struct test_report *report);
void test_parse_any(const struct test_output *output, struct test_report *report);
