/*
 * report: the results of one test run: how many tests passed, failed and were skipped,
 * and of each failed test the name, the place and the message. The parsers fill it from
 * bytes that any program may have written, so everything in it has a ceiling.
 */
#pragma once

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* Failed tests that are kept by name; further ones are only counted. */
	TEST_FAILURES_MAX = 1000,
	/* Failures whose words are kept; no more are shown (run_tests). */
	TEST_TEXTS_MAX = 10,
	/* Bytes of words per failure, before they are cut into lines. */
	TEST_TEXT_MAX = 16 << 10,
	TEST_NAME_MAX = 300,
	/* Items of an array that doubles, when it is made. */
};

enum test_state { TEST_PASSED = 1, TEST_FAILED, TEST_SKIPPED };

/* One test as a parser has seen it; all but name and state may be empty. */
struct test_seen {
	enum test_state state;
	struct str group;  /* put before the name, with " / " between */
	struct str name;   /* for people */
	struct str select; /* by which its runner can run it again */
	struct str file;   /* "": the file is searched in the text */
	uint64_t line;
	struct str text;
};

struct test_failure {
	const char *name;
	const char *select; /* NULL: it cannot be run alone */
	/* relative to the workspace when it is inside; NULL: not known */
	const char *file;
	uint64_t line;    /* 0: unknown */
	const char *text; /* "" when there are no words, or they are not kept */
	bool passed_again, failed_again;
};

struct test_report {
	struct arena arena;
	const char *folder; /* absolute: the runner's; or NULL */
	/* the prefix of FOLDER in the workspace: "" or "sub/"; or NULL */
	const char *prefix;
	uint64_t passed, failed, skipped;
	char last[TEST_NAME_MAX + 1]; /* name of the test that was added last */
	struct test_failure *failures;
	size_t count;
	/*
	 * The first run, when this is the second run of its failures; NULL: there was
	 * none.
	 */
	struct test_report *first;
};

void test_report_init(struct test_report *report, const char *folder, const char *prefix);
void test_report_fini(struct test_report *report);
void test_report_add(struct test_report *report, const struct test_seen *seen);
/* Add TEXT to FAILURE, when it has no text yet, and the place that TEXT names. */
void test_report_add_text(struct test_report *report, struct test_failure *failure,
			  struct str text);
/* Set the place of FAILURE, when the reader knows it better than the failure's text. */
void test_report_place(struct test_report *report, struct test_failure *failure,
		       struct str file, uint64_t line);
uint64_t test_report_total(const struct test_report *report);

/*
 * The first place in a source file that TEXT names: "a/b.c:12", "at t/a.t line 3", "File
 * "a.py", line 3". Absolute paths outside FOLDER (NULL: all) are skipped. False: there is
 * none.
 */
bool report_place_find(struct str text, const char *folder, struct str *file,
		       uint64_t *line);

/*
 * Readers for the output of test runners. They are pure: bytes in, a report out. Bytes
 * that report no test are skipped; no reader can fail.
 */

/* The output and the files of a runner. */
struct test_output {
	struct str out, error; /* the output of the runner */
	/* the file that the runner had to write; empty: it wrote none */
	struct str report;
	struct str progress; /* another file, which it writes while it runs; or empty */
	/* Go: the text with which the names of packages begin; or NULL */
	const char *module;
};

/* TAP, and what prove prints around it. */
void report_parse_tap(const struct test_output *output, struct test_report *report);
void report_parse_prove(const struct test_output *output, struct test_report *report);
void report_tap_text(struct str text, struct str group, struct test_report *report);

/* The output of cargo test. */
void report_cargo_text(struct str text, struct str group, struct test_report *report);

/*
 * A bounded reader of the XML that test runners write: elements, attributes, text, CDATA;
 * comments, processing instructions and declarations are passed over. No entity but the
 * five and the numbered ones is known, nothing is loaded, nothing is nested in memory.
 *
 * A strict parser such as expat stops at the first wrong byte and loses all tests behind
 * it. Real reports have such bytes: meson 1.0 writes the escape bytes of a test's output
 * unchanged, and cmocka writes one document behind the other.
 */

enum xml_event { XML_END, XML_OPEN, XML_CLOSE, XML_TEXT };

struct xml {
	struct str rest;
	struct str name;       /* of XML_OPEN and XML_CLOSE */
	struct str attributes; /* of XML_OPEN, as written */
	struct str text;       /* of XML_TEXT, as written */
	/* it comes from CDATA, so xml_add_text leaves it unchanged */
	bool literal;
	bool closes; /* an element without content: its XML_CLOSE comes next */
};

/* Read the next event. XML_END also where the text breaks off or is no XML. */
enum xml_event xml_next(struct xml *xml);
/* Append the text of XML_TEXT, its entities decoded. */
void xml_add_text(const struct xml *xml, struct buf *out);
/* Replace OUT by an attribute's value, decoded. False: there is none. */
bool xml_attribute(const struct xml *xml, const char *name, struct buf *out);

/*
 * JUnit XML in the form of its writers. When there is no test in it, because the runner
 * still runs or was ended, the output of the runner so far is read.
 */
void report_parse_phpunit(const struct test_output *output, struct test_report *report);
void report_parse_pytest(const struct test_output *output, struct test_report *report);
void report_parse_ctest(const struct test_output *output, struct test_report *report);
void report_parse_meson(const struct test_output *output, struct test_report *report);

/*
 * Read the output as TAP, as lines of the test libraries of C (cmocka and GoogleTest,
 * Check, Unity) and of automake, as cargo's and as JUnit XML of any program, and take the
 * reading with most tests.
 */
void report_parse_any(const struct test_output *output, struct test_report *report);
