/* shown_failing_line: which lines tell of a failure; shown_binary_kind: what bytes look like. */
#include "base/fd.h"
#include "tools/shown.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEXT_MAX = 1 << 20 };

static void a_failure_is_known_by_how_its_line_begins(void **state)
{
	static const char *const failing[] = {
		"error: no such file",
		"src/a.c:12:5: error: expected ';'",
		"src/a.c:12: undefined reference to `f'",
		"a.o:(.text+0x5): undefined reference to `f'",
		"src/a.ts(3,5): error TS2304: Cannot find name",
		"error[E0308]: mismatched types",
		"A.java:3: error: ';' expected",
		"collect2: error: ld returned 1 exit status",
		"make: *** [Makefile:3: all] Error 1",
		"make[2]: *** [all] Error 2",
		"ninja: build stopped: subcommand failed.",
		"FAILED tests/test_a.py::test_b - assert 1 == 2",
		"FAIL: test_b (a.A)",
		"    --- FAIL: TestB (0.00s)",
		"not ok 3 - it holds",
		"[  FAILED  ] A.b (1 ms)",
		"[ERROR] COMPILATION ERROR :",
		"E       assert 1 == 2",
		"tests/test_a.py:12: AssertionError",
		"ValueError: bad",
		"java.lang.IllegalStateException: no",
		"Traceback (most recent call last):",
		"thread 'main' panicked at src/main.rs:3:5:",
		"panic: runtime error: index out of range",
		"==123==ERROR: AddressSanitizer: heap-use-after-free",
		"PHP Fatal error:  Uncaught Error",
		"  \xe2\x97\x8f suite \xe2\x80\xba test",
		"\033[1m\033[31merror\033[0m: could not compile",
		"npm ERR! code ELIFECYCLE",
		"Segmentation fault (core dumped)",
		"FAILED",
	};
	static const char *const others[] = {
		"",
		"    ",
		"ok 3 - the error is told",
		"errors: 0",
		"error_test.c: compiled",
		"fail-fast is on",
		"gcc -c error.c",
		"src/a.c:12:5: warning: unused variable",
		"Compiling failures v0.1.0",
		"failover took place",
		"makefile: read",
		"12:30:01 all is well",
		"0 failed, 12 passed",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(failing) / sizeof(failing[0]); i++) {
		if (!shown_failing_line(str_of(failing[i])))
			print_error("%s\n", failing[i]);
		assert_true(shown_failing_line(str_of(failing[i])));
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (shown_failing_line(str_of(others[i])))
			print_error("%s\n", others[i]);
		assert_false(shown_failing_line(str_of(others[i])));
	}
}

static int file_of(const struct buf *content)
{
	int fd = -1;
	struct err err;

	assert_true(fd_memory_file("test", buf_str(content), &fd, &err));
	return fd;
}

static void they_are_gathered_with_their_numbers(void **state)
{
	struct buf content, out;
	int fd;

	(void)state;
	buf_init(&content, TEXT_MAX);
	buf_init(&out, TEXT_MAX);
	(void)buf_adds(&content, "error: shown\nfine\n");
	for (int i = 0; i < 100; i++)
		(void)buf_addf(&content, "%0*d\n", 3000, i);
	(void)buf_adds(&content, "error: in the middle\nx\n\033[31mfatal: red\033[0m\n");
	for (int i = 0; i < 200000; i++)
		(void)buf_addc(&content, 'x');
	(void)buf_adds(&content, "\nerror: behind a long line\nnot ok without an end");
	fd = file_of(&content);
	assert_int_equal(shown_failing_gather(fd, 0, 1, STR("a\nerror: shown\nb\n"), &out),
			 4);
	assert_string_equal(out.data, "103\terror: in the middle\n105\tfatal: red\n"
				      "107\terror: behind a long line\n"
				      "108\tnot ok without an end\n");
	/* From a place on, whose number the caller knows. */
	buf_clear(&out);
	assert_int_equal(shown_failing_gather(fd, 13, 2, STR(""), &out), 4);
	assert_true(str_starts(buf_str(&out), STR("103\t")));
	(void)close(fd);
	buf_fini(&content);
	buf_fini(&out);
}

static void a_line_is_left_out_only_where_it_begins_a_shown_line(void **state)
{
	static const char shown[] = "x error: inside\nerror: b and more\n\nerror: a\n"
				    "error: c\nerror: last";
	struct buf content, out;
	int fd;

	(void)state;
	buf_init(&content, TEXT_MAX);
	buf_init(&out, TEXT_MAX);
	(void)buf_adds(&content, "error: a\nerror: b\nerror: c and more\nerror: inside\n"
				 "error: last\nerror: zzz\nERROR: a\n");
	fd = file_of(&content);
	assert_int_equal(shown_failing_gather(fd, 0, 1, STR(shown), &out), 4);
	assert_string_equal(out.data, "3\terror: c and more\n4\terror: inside\n"
				      "6\terror: zzz\n7\tERROR: a\n");
	/* Nothing is shown. */
	buf_clear(&out);
	assert_int_equal(shown_failing_gather(fd, 0, 1, STR(""), &out), 7);
	(void)close(fd);
	buf_fini(&content);
	buf_fini(&out);
}

static void ten_are_told_and_all_counted(void **state)
{
	struct buf content, out;
	int fd;

	(void)state;
	buf_init(&content, TEXT_MAX);
	buf_init(&out, TEXT_MAX);
	for (int i = 0; i < 30; i++)
		(void)buf_addf(&content, "error: %0*d\n", 300, i);
	fd = file_of(&content);
	assert_int_equal(shown_failing_gather(fd, 0, 1, STR(""), &out), 30);
	assert_true(out.size < (size_t)FAILING_SHOWN * (FAILING_LINE_BYTES + 8));
	assert_non_null(strstr(out.data, "\n10\terror: "));
	assert_null(strstr(out.data, "\n11\terror: "));
	(void)close(fd);
	buf_fini(&content);
	buf_fini(&out);
}

static void bytes_are_known_by_their_beginning(void **state)
{
	static const struct {
		struct str bytes;
		const char *kind;
	} rows[] = {
		{{"\x89PNG\r\n\x1a\n\0\0", 10}, "PNG"},
		{{"\x7f"
		  "ELF\2\1\1\0",
		  8},
		 "ELF"},
		{{"RIFF\x10\0\0\0WEBPVP8 ", 16}, "WebP"},
		{{"RIFF\x10\0\0\0WAVEfmt ", 16}, "RIFF"},
		{{"PK\3\4\0\0", 6}, "ZIP"},
		{{"a\0b c\0d", 7}, "text in parts that end with NUL"},
		{{"\0\0\0\0", 4}, NULL},
		{{"a\0\1\2\0", 5}, NULL},
		{{"", 0}, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *kind = shown_binary_kind(rows[i].bytes);

		if (rows[i].kind == NULL)
			assert_null(kind);
		else
			assert_string_equal(kind, rows[i].kind);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failure_is_known_by_how_its_line_begins),
		cmocka_unit_test(they_are_gathered_with_their_numbers),
		cmocka_unit_test(a_line_is_left_out_only_where_it_begins_a_shown_line),
		cmocka_unit_test(ten_are_told_and_all_counted),
		cmocka_unit_test(bytes_are_known_by_their_beginning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
