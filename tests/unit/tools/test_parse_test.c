/*
 * Tests of tools/test_parse and what they stand on: what each runner's words become. The
 * texts are cut from what the real programs print; whole ones are in fuzz/corpus/test_output.
 */
#include "../base/unit.h"

#include <stdio.h>
#include <string.h>

#include "tools/tests/report.h"
#include "tools/tests/run_tests.h"

struct example {
	const char *runner;
	const char *text; /* all it printed, and the file it wrote */
	uint64_t passed, failed, skipped;
	const char *name; /* of the first failure, or NULL */
	const char *file;
	uint64_t line;
	const char *says; /* in its words, or NULL */
};

static void check(const struct example *row)
{
	const struct test_runner *runner = test_runner_find(row->runner);
	const struct test_output output = {
		.out = str_of(row->text),
		.report = str_of(row->text),
		.progress = str_of(row->text),
		.module = "example.org/sums",
	};
	struct test_report report;

	assert_non_null(runner);
	test_report_init(&report, "/w", "");
	runner->parse(&output, &report);
	if (report.passed != row->passed || report.failed != row->failed ||
	    report.skipped != row->skipped)
		fail_msg("%llu passed, %llu failed, %llu skipped: %s",
			 (unsigned long long)report.passed,
			 (unsigned long long)report.failed,
			 (unsigned long long)report.skipped, row->text);
	if (row->name != NULL) {
		assert_true(report.count > 0);
		assert_string_equal(report.failures[0].name, row->name);
		assert_string_equal(report.failures[0].file ? report.failures[0].file : "",
				    row->file ? row->file : "");
		assert_int_equal(report.failures[0].line, row->line);
		if (row->says != NULL && strstr(report.failures[0].text, row->says) == NULL)
			fail_msg("\"%s\" is not in: %s", row->says, report.failures[0].text);
	}
	test_report_fini(&report);
}

static void junit_xml_is_read_as_its_writers_have_it(void **state)
{
	const struct example rows[] = {
		{"phpunit",
		 "<?xml version=\"1.0\"?><testsuites><testsuite name=\"T\">"
		 "<testcase name=\"a\" class=\"N\\T\" file=\"/w/tests/T.php\" line=\"3\"/>"
		 "<testcase name=\"b with data set &quot;x&quot;\" class=\"N\\T\" "
		 "file=\"/w/tests/T.php\" line=\"9\"><failure type=\"E\">N\\T::b\nno &lt;luck&gt;"
		 "\n\n/w/tests/T.php:12</failure></testcase>"
		 "<testcase name=\"c\" class=\"N\\T\"><skipped/></testcase>"
		 "</testsuite></testsuites>",
		 1, 1, 1, "N\\T::b with data set \"x\"", "tests/T.php", 12, "no <luck>"},
		{"pytest",
		 "<testsuites><testsuite><testcase classname=\"tests.test_a.TestC\" "
		 "name=\"test_x[1]\" file=\"tests/test_a.py\" line=\"7\"><error message=\"in a "
		 "fixture\"/></testcase></testsuite></testsuites>",
		 0, 1, 0, "tests/test_a.py::TestC::test_x[1]", "tests/test_a.py", 8,
		 "in a fixture"},
		{"ctest",
		 "<testsuite><testcase name=\"sums\" status=\"fail\"><failure message=\"\"/>"
		 "<system-out>[ RUN      ] one\n[  FAILED  ] one\n[ RUN      ] two\n"
		 "[       OK ] two\n[  ERROR   ] --- 1 != 2\n[   LINE   ] --- ../x/a.c:17: error: "
		 "Failure!\n</system-out></testcase></testsuite>",
		 1, 1, 0, "sums / one", "x/a.c", 17, "1 != 2"},
		/* What it printed says other than its exit code: that counts. */
		{"ctest",
		 "<testsuite><testcase name=\"sums\" status=\"run\"><system-out>not ok 1 - x\n"
		 "</system-out></testcase></testsuite>",
		 1, 0, 0, NULL, NULL, 0, NULL},
		{"meson",
		 "<testsuites><testsuite name=\"p.p / lines\"><testcase name=\"1 - a\"/>"
		 "<testcase name=\"2 - b\"><failure/></testcase><system-out>ok 1 - a\n"
		 "not ok 2 - b\n# t/b.sh:5: seen 1\n</system-out></testsuite></testsuites>",
		 1, 1, 0, "lines / 2 - b", "t/b.sh", 5, "seen 1"},
		/* meson 1.0 writes the bytes of a test's output as they are. */
		{"meson",
		 "<testsuites><testsuite name=\"p\"><testcase name=\"red\"><failure/>"
		 "<system-out>\x1b[31mno\x01 \xe9 &nbsp; & more\n</system-out></testcase>"
		 "<testcase name=\"fine\"/></testsuite></testsuites>",
		 1, 1, 0, "red", NULL, 0, "& more"},
		/* cmocka writes a document for each of its groups. */
		{"make",
		 "cc -o t t.c\n<?xml version=\"1.0\" encoding=\"UTF-8\" ?>\n<testsuites>\n"
		 "  <testsuite name=\"one\">\n    <testcase name=\"a\" >\n      <failure>"
		 "<![CDATA[t.c:6: error: no]]></failure>\n    </testcase>\n  </testsuite>\n"
		 "</testsuites>\n<testsuites>\n  <testsuite name=\"two\">\n"
		 "    <testcase name=\"b\" >\n    </testcase>\n  </testsuite>\n</testsuites>\n"
		 "make: *** [Makefile:2: test] Error 1\n",
		 1, 1, 0, "a", "t.c", 6, "no"},
		/* It breaks off. */
		{"phpunit", "<testsuite><testcase name=\"a\" class=\"T\"/><testcase name=\"b",
		 1, 0, 0, NULL, NULL, 0, NULL},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++)
		check(&rows[i]);
}

static void a_run_without_a_report_is_read_from_what_it_said_on_the_way(void **state)
{
	const struct example rows[] = {
		{"phpunit",
		 "##teamcity[testStarted name='a' locationHint='php_qn:///w/t/T.php::\\N\\T::a']\n"
		 "##teamcity[testFinished name='a']\n"
		 "##teamcity[testStarted name='b with |'x|'' "
		 "locationHint='php_qn:///w/t/T.php::\\N\\T::b']\n"
		 "##teamcity[testFailed name='b' message='no |[luck|]|nat all |0x2192' details=' "
		 "/w/t/T.php:12|n ']\n##teamcity[testFinished name='b']\n"
		 "##teamcity[testStarted name='c']\n##teamcity[testIgnored name='c']\n"
		 "##teamcity[testFinished name='c']\n##teamcity[testStarted name='runs']\n",
		 1, 1, 1, "N\\T::b with 'x'", "t/T.php", 12, "no [luck]\nat all ?"},
		/* What breaks off, and what does not begin. */
		{"phpunit",
		 "##teamcity[testFinished name='a']\n##teamcity[testStarted name='|", 0,
		 0, 0, NULL, NULL, 0, NULL},
		{"pytest",
		 "collected 9 items\n\ntests/test_a.py .F.sx [ 50%]\n.E [100%]\n\n.\n"
		 "= FAILURES =\n",
		 3, 2, 2, "tests/test_a.py / test 2", "tests/test_a.py", 0, NULL},
		{"pytest",
		 "tests/test_a.py::test_a PASSED  [ 25%]\ntests/test_a.py::T::test_b FAILED [ 50%]\n"
		 "tests/test_a.py::test_c SKIPPED (why) [ 75%]\ntests/test_a.py::test_d ",
		 1, 1, 1, "tests/test_a.py::T::test_b", "tests/test_a.py", 0, NULL},
		{"ctest", "1/2 Test #1: sums ....   Passed  0.01 sec\n", 1, 0, 0, NULL,
		 NULL, 0, NULL},
		{"meson", "1/4 unit / sums  FAIL  0.05s\n", 0, 1, 0, "unit / sums", NULL,
		 0, NULL},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++)
		check(&rows[i]);
}

static void tap_counts_the_innermost_tests(void **state)
{
	const struct example rows[] = {
		{"node",
		 "# Subtest: of two\n    # Subtest: small\n    ok 1 - small\n"
		 "    not ok 2 - wrong\n      ---\n      location: '/w/a.test.js:3:1'\n"
		 "      error: 'no'\n      stack: |-\n        f (/w/a.test.js:4:9)\n      ...\n"
		 "    1..2\nnot ok 1 - of two\nok 2 - c # SKIP why\nok 3 # TODO\n1..3\n",
		 1, 1, 2, "of two > wrong", "a.test.js", 4, "error: 'no'"},
		{"node", "Bail out! no disk\n", 0, 1, 0, "Bail out", NULL, 0, "no disk"},
		{"node", "not ok 1 - parent\n", 0, 1, 0, "parent", NULL, 0, NULL},
		{"prove",
		 "./t/a.t .. \n1..1\nnot ok 1 - x\n\n#   Failed test 'x'\n#   at ./t/a.t line 10.\n"
		 "Dubious, test returned 1 (wstat 256, 0x100)\nFailed 1/1 subtests \n"
		 "t/b.t .. \n1..1\nok 1\nok\nt/c.t .. \n1..0 # SKIP no\nskipped: no\n"
		 "t/d.t .. \nwrong\nDubious, test returned 2 (wstat 512, 0x200)\n",
		 1, 2, 1, "t/a.t: x", "t/a.t", 10, "Failed test 'x'"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++)
		check(&rows[i]);
}

#define GO(action, rest) \
	"{\"Action\":\"" action "\",\"Package\":\"example.org/sums/text\"" rest "}\n"

static void other_formats_of_languages(void **state)
{
	const struct example rows[] = {
		{"go",
		 GO("run", ",\"Test\":\"TestA/b\"")
			 GO("output",
			    ",\"Test\":\"TestA/b\",\"Output\":\"    a_test.go:7: no\\n\"")
				 GO("fail", ",\"Test\":\"TestA/b\"")
					 GO("pass", ",\"Test\":\"TestA/c\"")
						 GO("fail", ",\"Test\":\"TestA\"")
							 GO("skip", ",\"Test\":\"TestB\"")
								 GO("fail", ""),
		 1, 1, 1, "example.org/sums/text.TestA/b", "text/a_test.go", 7, "no"},
		/* Another package ends in between. */
		{"go",
		 GO("fail", ",\"Test\":\"TestA\"") "{\"Action\":\"pass\",\"Package\":\"example.org/sums\"}\n" GO(
			 "fail", ""),
		 0, 1, 0, "example.org/sums/text.TestA", NULL, 0, NULL},
		{"go", "FAIL\texample.org/sums/text [build failed]\n", 0, 1, 0,
		 "example.org/sums/text", NULL, 0, NULL},
		{"cargo",
		 "running 3 tests\ntest a::b ... ok\ntest c ... ignored, why\ntest d - should panic "
		 "... FAILED\n\nfailures:\n\n---- d stdout ----\nthread 'd' panicked at "
		 "src/lib.rs:19:9:\nno\n\n\nfailures:\n    d\n",
		 1, 1, 1, "d", "src/lib.rs", 19, "no"},
		{"jest",
		 "{\"testResults\":[{\"name\":\"/w/a.test.js\",\"status\":\"failed\","
		 "\"assertionResults\":[{\"fullName\":\"x y\",\"status\":\"failed\","
		 "\"failureMessages\":[\"Error: no\\n    at f (/w/a.test.js:7:19)\\n    at "
		 "(/w/node_modules/j/b.js:1:2)\"]},{\"fullName\":\"z\",\"status\":\"passed\"},"
		 "{\"fullName\":\"t\",\"status\":\"todo\"}]}]}",
		 1, 1, 1, "x y", "a.test.js", 7, "Error: no"},
		{"vitest",
		 "{\"testResults\":[{\"name\":\"/w/b.test.js\",\"status\":\"failed\",\"message\":"
		 "\"Failed to load\",\"assertionResults\":[]}]}",
		 0, 1, 0, "b.test.js", "b.test.js", 0, "Failed to load"},
		{"jest", "no JSON", 0, 0, 0, NULL, NULL, 0, NULL},
		/* Before 9.2 mocha prints its JSON, behind what the tests have printed. */
		{"mocha",
		 "a test's own line\n{\n  \"stats\": {\"tests\": 3},\n \"passes\": [{\"fullTitle\":"
		 "\"sum adds\"}], \"pending\": [{\"fullTitle\": \"sum later\"}], \"failures\": "
		 "[{\"fullTitle\": \"sum of three\", \"file\": \"/w/test/sum.js\", \"err\": "
		 "{\"message\": \"2 !== 3\", \"stack\": \"AssertionError: 2 !== 3\\n    at "
		 "Context.<anonymous> (test/sum.js:5:12)\"}}]}",
		 1, 1, 1, "sum of three", "test/sum.js", 5, "2 !== 3"},
		{"mocha",
		 "{\n  \"stats\": {}, \"failures\": [{\"fullTitle\": \"sum \\\"before all\\\" hook\","
		 " \"file\": \"/w/test/sum.js\", \"err\": {\"message\": \"no ground\"}}]}",
		 0, 1, 0, "sum \"before all\" hook", "test/sum.js", 0, "no ground"},
		{"mocha", "no JSON", 0, 0, 0, NULL, NULL, 0, NULL},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++)
		check(&rows[i]);
}

static void lines_of_c_libraries_are_told_apart(void **state)
{
	const struct example rows[] = {
		{"make",
		 "[ RUN      ] a\n[  ERROR   ] --- 1 != 2\n[   LINE   ] --- t/a.c:17: error: "
		 "Failure!\n[  FAILED  ] a\n[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] a\n",
		 0, 1, 0, "a", "t/a.c", 17, "1 != 2"},
		{"make",
		 "[ RUN      ] S.A\nt/a.cc:9: Failure\n[  FAILED  ] S.A (0 ms)\n[ RUN      ] S.B\n"
		 "[       OK ] S.B (3 ms)\n",
		 1, 1, 0, "S.A", "t/a.cc", 9, NULL},
		{"make",
		 "50%: Checks: 2, Failures: 1, Errors: 0\nt/c.c:6:P:two:small:0: Passed\n"
		 "t/c.c:12:F:two:wrong:0: Assertion 'a: b' failed\n",
		 1, 1, 0, "wrong", "t/c.c", 12, "Assertion"},
		{"make",
		 "90%: Checks: 10, Failures: 1, Errors: 0\nt/c.c:12:E:two:wrong:0: died\n",
		 9, 1, 0, "wrong", "t/c.c", 12, "died"},
		{"make",
		 "t/u.c:10:test_a:PASS\nt/u.c:15:test_b:FAIL: Expected 5 Was 3\n"
		 "t/u.c:19:test_c:IGNORE: later\n3 Tests 1 Failures 1 Ignored\nFAIL\n",
		 1, 1, 1, "test_b", "t/u.c", 15, "Expected 5"},
		{"make", "PASS: a\nXFAIL: b\nSKIP: c\nFAIL: d\nERROR: e\n# PASS: 1\n", 2,
		 2, 1, "d", NULL, 0, NULL},
		{"make",
		 "1/3 Test #1: sums ......***Failed    0.01 sec\n2/3 Test #2: luck ...   Passed   "
		 "0.01 sec\n3/3 Test #3: x ....***Skipped   0.01 sec\n",
		 1, 1, 1, "sums", NULL, 0, NULL},
		{"make",
		 "1/2 p:unit / sums FAIL            0.05s   exit status 1\n2/2 p / b      OK      "
		 "0.04s\n\nSummary of Failures:\n\n1/2 p:unit / sums FAIL            0.05s   exit "
		 "status 1\n",
		 1, 1, 0, "p:unit / sums FAIL", NULL, 0, NULL},
		/* A compiler speaks of lines, but not of tests. */
		{"make", "a.c:3:5: error: expected ';'\nmake: *** [a.o] Error 1\n", 0, 0,
		 0, NULL, NULL, 0, NULL},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++)
		check(&rows[i]);
}

static void a_place_is_a_source_file_and_a_line(void **state)
{
	const struct {
		const char *text, *file;
		uint64_t line;
	} rows[] = {
		{"a/b.c:12: error", "a/b.c", 12},
		{"at t/a.t line 3.", "t/a.t", 3},
		{"  File \"x.py\", line 40, in f", "x.py", 40},
		{"(/w/src/a.js:3:1)", "/w/src/a.js", 3},
		{"/usr/lib/x.js:3 then /w/y.js:4", "/w/y.js", 4},
		{"/w/node_modules/x.js:3", NULL, 0},
		{"at 12:30 it was x.y:z", NULL, 0},
		{"a.c:99999999999", NULL, 0},
		{"host.example:80000 .c:3 c.:4", NULL, 0},
		{"http://h/a.b7", NULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct str file = {0};
		uint64_t line = 0;
		bool found = report_place_find(str_of(rows[i].text), "/w", &file, &line);

		if (found != (rows[i].file != NULL))
			fail_msg("%s: %.*s", rows[i].text, (int)file.size, file.data);
		if (found)
			assert_true(str_is(file, rows[i].file));
		assert_int_equal(line, rows[i].line);
	}
}

static void a_folder_with_blanks_is_part_of_its_files(void **state)
{
	const struct {
		const char *text, *file;
	} rows[] = {
		{"/home/a b/c d/t/x.c:12: error", "/home/a b/c d/t/x.c"},
		{"died at (../../../a b/c d/t/x.c:12)", "../../../a b/c d/t/x.c"},
		{"in \"/home/a b/c d/x.py\", line 12", "/home/a b/c d/x.py"},
		/* Another folder's file is no place of ours. */
		{"/home/a b/other/x.c:12", "b/other/x.c"},
		{"../c d/x.c:12", "d/x.c"},
		{"t/x.c:12 of /home/a b/c d/y.c:3", "t/x.c"},
	};
	struct test_report report;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct str file = {0};
		uint64_t line = 0;

		assert_true(report_place_find(str_of(rows[i].text), "/home/a b/c d",
					      &file, &line));
		if (!str_is(file, rows[i].file))
			fail_msg("%s: %.*s", rows[i].text, (int)file.size, file.data);
	}
	test_report_init(&report, "/home/a b/c d", "");
	test_report_add(&report, &(struct test_seen){.state = TEST_FAILED,
						     .name = STR("one"),
						     .text = str_of(rows[0].text)});
	test_report_add(&report,
			&(struct test_seen){.state = TEST_FAILED,
					    .name = STR("two"),
					    .text = STR("../../../a b/c d/t/x.c:12")});
	assert_string_equal(report.failures[0].file, "t/x.c");
	assert_string_equal(report.failures[1].file, "t/x.c");
	test_report_fini(&report);
}

static void a_failure_that_passes_again_is_known_by_its_name(void **state)
{
	struct test_report first, again;

	(void)state;
	test_report_init(&first, NULL, NULL);
	report_tap_text(STR("not ok 1 - a\nnot ok 2 - b\nnot ok 3 - c\n"), STR(""), &first);
	test_report_init(&again, NULL, NULL);
	again.first = &first;
	report_tap_text(STR("ok 1 - a\nnot ok 2 - b\n"), STR(""), &again);
	assert_true(first.failures[0].passed_again && !first.failures[0].failed_again);
	assert_true(!first.failures[1].passed_again && first.failures[1].failed_again);
	assert_true(!first.failures[2].passed_again && !first.failures[2].failed_again);
	test_report_fini(&again);
	test_report_fini(&first);
}

static void failures_are_kept_up_to_a_ceiling_and_counted_beyond(void **state)
{
	struct test_report report;
	const struct test_seen seen = {.state = TEST_FAILED,
				       .name = STR("x"),
				       .text = STR("why")};

	(void)state;
	test_report_init(&report, NULL, NULL);
	for (int i = 0; i < TEST_FAILURES_MAX + 5; i++)
		test_report_add(&report, &seen);
	assert_int_equal(report.failed, TEST_FAILURES_MAX + 5);
	assert_int_equal(report.count, TEST_FAILURES_MAX);
	assert_string_equal(report.failures[TEST_TEXTS_MAX - 1].text, "why");
	assert_string_equal(report.failures[TEST_TEXTS_MAX].text, "");
	test_report_fini(&report);
}

static void xml_is_read_without_its_dangers(void **state)
{
	const char text[] =
		"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><!-- <x> -->"
		"<a k='1 > 2' l=\"&#65;&#x42;&amp;&nope;&b;\">t&lt;<![CDATA[<&lt;]]></a>"
		"<b/>";
	struct xml xml = {.rest = str_of(text)};
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	/* The rest of a declaration with brackets is text. */
	assert_int_equal(xml_next(&xml), XML_TEXT);
	assert_int_equal(xml_next(&xml), XML_OPEN);
	assert_true(str_is(xml.name, "a"));
	assert_true(xml_attribute(&xml, "k", &out));
	assert_string_equal(out.data, "1 > 2");
	assert_true(xml_attribute(&xml, "l", &out));
	assert_string_equal(out.data, "AB&&nope;&b;");
	assert_false(xml_attribute(&xml, "m", &out));
	buf_clear(&out);
	assert_int_equal(xml_next(&xml), XML_TEXT);
	xml_add_text(&xml, &out);
	assert_int_equal(xml_next(&xml), XML_TEXT);
	xml_add_text(&xml, &out);
	assert_string_equal(out.data, "t<<&lt;");
	assert_int_equal(xml_next(&xml), XML_CLOSE);
	assert_int_equal(xml_next(&xml), XML_OPEN);
	assert_int_equal(xml_next(&xml), XML_CLOSE);
	assert_true(str_is(xml.name, "b"));
	assert_int_equal(xml_next(&xml), XML_END);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(junit_xml_is_read_as_its_writers_have_it),
		cmocka_unit_test(a_run_without_a_report_is_read_from_what_it_said_on_the_way),
		cmocka_unit_test(tap_counts_the_innermost_tests),
		cmocka_unit_test(other_formats_of_languages),
		cmocka_unit_test(lines_of_c_libraries_are_told_apart),
		cmocka_unit_test(a_place_is_a_source_file_and_a_line),
		cmocka_unit_test(a_folder_with_blanks_is_part_of_its_files),
		cmocka_unit_test(a_failure_that_passes_again_is_known_by_its_name),
		cmocka_unit_test(failures_are_kept_up_to_a_ceiling_and_counted_beyond),
		cmocka_unit_test(xml_is_read_without_its_dangers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
