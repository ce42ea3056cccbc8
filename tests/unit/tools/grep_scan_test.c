/*
 * Tests of tools/grep_pattern and tools/grep_scan: whatever a pattern is turned into, and however a
 * file falls into pieces, the lines found are those the regex matches one by one.
 */
#include "tree.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/text/regex.h"
#include "tools/search/grep.h"
#include "tools/search/grep_pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The lines of TEXT that REGEX matches, asked line by line: what grep promises. */
static void lines_one_by_one(const struct regex *regex, struct str text, struct buf *out)
{
	struct regex_scratch *scratch = regex_scratch_new(regex);
	size_t offset = 0;
	struct str rest = text;
	struct str line;

	while (str_next_line(&rest, &line)) {
		struct regex_span span;

		if (regex_find(regex, scratch, line, 0, &span) == REGEX_FOUND)
			(void)buf_addf(out, "%zu\n", offset);
		offset += line.size + 1;
	}
	regex_scratch_free(scratch);
}

static void lines_of_scan(const struct grep_pattern *pattern, struct str text, bool whole,
			  struct buf *out)
{
	struct grep_scan scan;
	struct grep_line line;
	int fd = -1;

	assert_true(fd_memory_file("text", text, &fd, NULL));
	grep_scan_init(&scan, pattern);
	grep_scan_begin(&scan, fd, whole);
	while (grep_scan_next(&scan, &line)) {
		(void)buf_addf(out, "%zu\n", (size_t)scan.base + line.start);
		assert_true(line.start <= line.match_start);
		assert_true(line.match_start <= line.match_end);
		assert_true(line.match_end <= line.end);
	}
	assert_false(scan.failed);
	assert_false(scan.limited);
	grep_scan_fini(&scan);
	(void)close(fd);
}

static void compare(const char *text_of_pattern, struct str text, bool ignore_case)
{
	struct grep_pattern pattern;
	struct regex *regex = NULL;
	struct buf expected, found, unicode;
	struct err err;

	buf_init(&expected, 1 << 26);
	buf_init(&found, 1 << 26);
	buf_init(&unicode, 1 << 12);
	(void)buf_addf(&unicode, "(*UCP)%s", text_of_pattern);
	if (!regex_compile(buf_str(&unicode),
			   REGEX_MULTILINE | (ignore_case ? REGEX_IGNORE_CASE : 0),
			   &regex, &err) ||
	    !grep_pattern_init(&pattern, str_of(text_of_pattern), false, ignore_case, &err))
		fail_msg("%s: %s", text_of_pattern, err.text);
	lines_one_by_one(regex, text, &expected);
	for (int whole = 0; whole < 2; whole++) {
		buf_clear(&found);
		lines_of_scan(&pattern, text, whole, &found);
		if (strcmp(found.data, expected.data) != 0)
			fail_msg("%s in %.2000s: expected lines at\n%.500s\nbut found\n%.500s",
				 text_of_pattern, text.data, expected.data, found.data);
	}
	grep_pattern_fini(&pattern);
	regex_free(regex);
	buf_fini(&expected);
	buf_fini(&found);
	buf_fini(&unicode);
}

/* Each is a way to meet, cross or look over a line end. */
static const char *const patterns[] = {
	"a",
	"ab",
	"abc",
	"a.c",
	"a.*c",
	"^a",
	"a$",
	"^$",
	"^",
	"$",
	"^a.*b$",
	"a\\s*b",
	"\\s",
	"\\s+$",
	"^\\s",
	"a\\s+b",
	"[^a]",
	"[^a]*b",
	"a[^b]",
	"[^\\n]b",
	"\\W",
	"\\D",
	"\\Wb",
	"a\\W*b",
	"\\bab\\b",
	"\\Bb",
	"\\ba",
	"a\\b",
	"a|b",
	"ab|^c",
	"(a|b)c",
	"(?:ab)+c",
	"(a)(b)?c",
	"a?b",
	"a*bc",
	"ab{2}",
	"ab{0,2}c",
	"ab{,2}",
	"a{2,}b",
	"x*",
	"(?=b)",
	"a(?=b)",
	"a(?!b)",
	"a(?!\\s)",
	"(?<=a)b",
	"(?<!a)b",
	"(?<!\\n)b",
	"(?<=\\s)b",
	"(?>a*)b",
	"a[^b]*+$",
	"a\\s*+b",
	"a++b",
	"a+?b",
	"(?i)AB",
	"(?i:A)b",
	"\\Aab",
	"b\\z",
	"b\\Z",
	"\\Qa.b\\E",
	"a\\.b",
	"\\.",
	"\\ta",
	"\\x61b",
	"[\\x00-\\x7f]b",
	"[[:space:]]b",
	"[[:alpha:]]+ ",
	"[^[:alpha:]]b",
	"[]a]b",
	"[^]a]b",
	"[a-c]+$",
	"[\\]a]b",
	"[\\s,]b",
	"[^\\S]b",
	"[\\D]b",
	"(a)\\1",
	"(?<x>a)\\k<x>",
	"(?P<n>b)c",
	"(?|(a)|(b))c",
	"(?#note)ab",
	"a{b",
	"a{",
	"a{1x",
	"\\{",
	"b}",
	"é",
	"é+b",
	"aé?b",
	"\\wé",
	"[é]b",
	"[^é]$",
	"\\p{L}b",
	"\\P{L}b",
	"\\h",
	"\\Hb",
	"\\Rb",
	"\\Nb",
	"\\v",
	"\\V$",
	"a\\Kb",
	"(?m)^b",
	"(?s)a.b",
	"(?-m)b$",
	"a b",
	"(?x)a b",
	"((a|b)+c)*$",
	"a(b|)c",
	"(^|b)c",
	"(c|$)",
	"^(?!a)",
	"^(?!.*b)",
	".",
	"..",
	"...$",
	".{3}",
	"\\S+\\s\\S+",
	"\\d",
	"\\d+\\D",
	"[0-9]{2}",
	"(?<!^)a",
	"ca*",
	"c(ab)?",
	"abab",
	"^.b",
	"bca|cab",
	"a{b|c{,}",
	"ab|bc|ca|x1",
	"aa|b\\.|é",
	"^a|b$|.c",
	"ab|(b|c)a|1",
	"[b[:]a:]b",
};

enum { PATTERNS = sizeof(patterns) / sizeof(patterns[0]) };

static void random_text(uint64_t *seed, size_t pieces, struct buf *text)
{
	static const char *const parts[] = {"a",  "b", "c", "ab", "\n", "\n", " ",
					    "\t", ".", "a", "é",  "1",  "x",  "B"};

	buf_clear(text);
	for (size_t i = 0; i < pieces; i++)
		(void)buf_adds(text,
			       parts[made_random(seed, sizeof(parts) / sizeof(parts[0]))]);
}

static void finds_the_lines_the_regex_matches_one_by_one(void **state)
{
	enum { TEXTS = 60 };
	uint64_t seed = 2463534242;
	struct buf text;

	(void)state;
	buf_init(&text, 1 << 20);
	for (unsigned i = 0; i < TEXTS; i++) {
		random_text(&seed, made_random(&seed, 60), &text);
		for (size_t k = 0; k < PATTERNS; k++) {
			compare(patterns[k], buf_str(&text), false);
			compare(patterns[k], buf_str(&text), true);
		}
	}
	buf_fini(&text);
}

static void bytes_that_are_no_utf8_match_nothing_but_hide_nothing(void **state)
{
	static const char text[] = "\xff\xfe ab\n\x80"
				   "b\nab\xc3\nabc\n";

	(void)state;
	for (size_t k = 0; k < PATTERNS; k++)
		compare(patterns[k], (struct str){text, sizeof(text) - 1}, false);
}

static void a_file_of_several_pieces_is_searched_as_one(void **state)
{
	uint64_t seed = 88172645463325252;
	struct buf text, part;

	(void)state;
	buf_init(&text, 1 << 22);
	buf_init(&part, 1 << 16);
	while (text.size < 3 * GREP_BUFFER + 12345) {
		random_text(&seed, 200, &part);
		(void)buf_addstr(&text, buf_str(&part));
	}
	for (size_t k = 0; k < PATTERNS; k += 7)
		compare(patterns[k], buf_str(&text), false);
	buf_fini(&text);
	buf_fini(&part);
}

/* Matching lines of TEXT for PATTERN. */
static size_t count_lines(const char *pattern_text, struct str text)
{
	struct grep_pattern pattern;
	struct buf found;
	size_t count = 0;

	buf_init(&found, 1 << 20);
	assert_true(grep_pattern_init(&pattern, str_of(pattern_text), false, false, NULL));
	lines_of_scan(&pattern, text, true, &found);
	for (size_t i = 0; i < found.size; i++)
		count += found.data[i] == '\n';
	grep_pattern_fini(&pattern);
	buf_fini(&found);
	return count;
}

static void a_line_longer_than_the_buffer_counts_once(void **state)
{
	static const char *const ways[] = {"needle", "need.e", "[n]eedle\\W*", "\\x6eeedle"};
	struct buf text;

	(void)state;
	buf_init(&text, 1 << 24);
	(void)buf_adds(&text, "first needle\n");
	/* A needle in every piece, one of them across each border. */
	while (text.size < 5 * GREP_BUFFER)
		(void)buf_adds(&text, text.size % 3 ? "xxxxxxx needle" : "y needle");
	(void)buf_adds(&text, "\nno\nlast needle");
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		assert_int_equal(count_lines(ways[i], buf_str(&text)), 3);
	/* And once alone, wherever it lies. */
	for (size_t at = GREP_BUFFER - 8; at < GREP_BUFFER + 8; at++) {
		buf_clear(&text);
		while (text.size < at)
			(void)buf_addc(&text, 'x');
		(void)buf_adds(&text, "needle");
		while (text.size < 2 * GREP_BUFFER + 99)
			(void)buf_addc(&text, 'x');
		for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
			assert_int_equal(count_lines(ways[i], buf_str(&text)), 1);
	}
	buf_fini(&text);
}

static void the_end_of_a_line_is_seen_before_a_carriage_return(void **state)
{
	(void)state;
	assert_int_equal(count_lines("b;$", STR("a;\r\nb;\r\nb;\nb;x\r\n")), 2);
	assert_int_equal(count_lines("^$", STR("\r\n\nx\r\n")), 2);
	assert_int_equal(count_lines("(?i)B;$", STR("b;\r\nb;\n")), 2);
	assert_int_equal(count_lines("b\\r$", STR("b\r\nb\n")), 1);
}

struct needle_case {
	const char *pattern, *needle;
	bool regex, by_line;
};

static void knows_what_each_match_must_hold(void **state)
{
	static const struct needle_case cases[] = {
		{"needle", "needle", false, false},
		{"foo\\.bar", "foo.bar", false, false},
		{"\\bneedle\\b", "needle", true, false},
		{"func\\s+(\\w+)\\(", "func", true, false},
		{"ab+cde", "cde", true, false},
		{"abcd*e", "abc", true, false},
		{"foo|bar", "foo|bar", false, false},
		{"foo|b\\.r|bazz", "foo|b.r|bazz", false, false},
		{"^foo|bar\\s+x", "foo|bar", true, false},
		{"foo|\\d+", "", true, false},
		{"foo|", "", true, false},
		{"a|b|c|d|e|f|g|h|i", "", true, false},
		{"(foo|bar)baz", "baz", true, false},
		{"x{3}yz", "yz", true, false},
		{"é+abc", "abc", true, false},
		{"\\d+", "", true, false},
		{"(?i)abc", "", true, true},
		{"a\\x20bc", "", true, true},
		{"[\\s,]abc", "abc", true, true},
		{"[^,]abc", "abc", true, false},
	};

	struct buf needles;

	(void)state;
	buf_init(&needles, 1 << 12);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct grep_pattern pattern;

		assert_true(grep_pattern_init(&pattern, str_of(cases[i].pattern), false,
					      false, NULL));
		buf_clear(&needles);
		for (size_t k = 0; k < pattern.needle_count; k++)
			(void)buf_addf(&needles, "%s%s", k ? "|" : "",
				       pattern.needles[k].data);
		assert_string_equal(needles.data, cases[i].needle);
		assert_int_equal(pattern.regex != NULL, cases[i].regex);
		assert_int_equal(pattern.regex && pattern.by_line, cases[i].by_line);
		grep_pattern_fini(&pattern);
	}
	buf_fini(&needles);
}

static void a_needle_is_found_wherever_it_is(void **state)
{
	uint64_t seed = 1;
	struct buf text;

	(void)state;
	buf_init(&text, 1 << 16);
	for (unsigned i = 0; i < 2000; i++) {
		struct grep_needle needle = {0};
		struct str part;
		size_t from;

		random_text(&seed, 1 + made_random(&seed, 300), &text);
		from = made_random(&seed, (unsigned)text.size);
		part = str_part(buf_str(&text), from, 1 + made_random(&seed, 6));
		grep_needle_set(&needle, part);
		for (size_t at = 0; at <= text.size; at++)
			assert_int_equal(grep_needle_find(&needle, buf_str(&text), at),
					 str_find(buf_str(&text), part, at));
		grep_needle_fini(&needle);
	}
	buf_fini(&text);
}

static void a_pattern_that_needs_too_many_steps_says_so(void **state)
{
	struct grep_pattern pattern;
	struct grep_scan scan;
	struct grep_line line;
	struct buf text;
	int fd = -1;

	(void)state;
	buf_init(&text, 1 << 16);
	for (size_t i = 0; i < 40; i++)
		(void)buf_adds(&text, "aaaaaaaaaa");
	(void)buf_adds(&text, "!\nfine aab\n");
	assert_true(grep_pattern_init(&pattern, STR("(a|a|aa)+b"), false, false, NULL));
	assert_true(fd_memory_file("text", buf_str(&text), &fd, NULL));
	grep_scan_init(&scan, &pattern);
	grep_scan_begin(&scan, fd, true);
	assert_true(grep_scan_next(&scan, &line));
	assert_memory_equal(scan.data + line.start, "fine aab", 8);
	assert_false(grep_scan_next(&scan, &line));
	/* The needle "b" spares the first line: without one it is met. */
	grep_scan_fini(&scan);
	grep_pattern_fini(&pattern);
	assert_true(grep_pattern_init(&pattern, STR("(a|a|aa)+[bc]"), false, false, NULL));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	grep_scan_init(&scan, &pattern);
	grep_scan_begin(&scan, fd, true);
	assert_true(grep_scan_next(&scan, &line));
	assert_memory_equal(scan.data + line.start, "fine aab", 8);
	assert_false(grep_scan_next(&scan, &line));
	assert_true(scan.limited);
	grep_scan_fini(&scan);
	grep_pattern_fini(&pattern);
	(void)close(fd);
	buf_fini(&text);
}

static void binary_files_have_no_lines(void **state)
{
	static const char text[] = "needle\n\0\nneedle\n";
	static const char *const ways[] = {"needle", "[n]eedle", "[\\s]*needle"};

	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		assert_int_equal(count_lines(ways[i], (struct str){text, sizeof(text) - 1}),
				 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_lines_the_regex_matches_one_by_one),
		cmocka_unit_test(bytes_that_are_no_utf8_match_nothing_but_hide_nothing),
		cmocka_unit_test(a_file_of_several_pieces_is_searched_as_one),
		cmocka_unit_test(a_line_longer_than_the_buffer_counts_once),
		cmocka_unit_test(the_end_of_a_line_is_seen_before_a_carriage_return),
		cmocka_unit_test(knows_what_each_match_must_hold),
		cmocka_unit_test(a_needle_is_found_wherever_it_is),
		cmocka_unit_test(a_pattern_that_needs_too_many_steps_says_so),
		cmocka_unit_test(binary_files_have_no_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
