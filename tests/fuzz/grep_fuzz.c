/*
 * Fuzz target of tools/grep_pattern and grep_scan: a byte of flags, a pattern, a byte 0, a text. The lines found
 * are those the pattern matches one by one, whatever it was rewritten to and searched for first.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "tools/search/grep.h"
#include "tools/search/grep_pattern.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_PATTERN_MAX = 256, FUZZ_TEXT_MAX = 4096, FUZZ_ANSWER_MAX = 1 << 16 };

static void require(bool truth)
{
	if (!truth)
		abort();
}

/* False: a line met the limits, so there is nothing to compare with. */
static bool add_lines_one_by_one(const struct regex *regex, struct str text, struct buf *out)
{
	struct regex_scratch *scratch = regex_scratch_new(regex);
	size_t offset = 0;
	struct str line;
	bool judged = true;

	while (judged && str_next_line(&text, &line)) {
		struct regex_span span;
		enum regex_answer answer = regex_find(regex, scratch, line, 0, &span);

		judged = answer != REGEX_LIMIT;
		if (answer == REGEX_FOUND)
			require(buf_addf(out, "%zu\n", offset));
		offset += line.size + 1;
	}
	regex_scratch_free(scratch);
	return judged;
}

static bool add_lines_of_scan(const struct grep_pattern *pattern, struct str text,
			      struct buf *out)
{
	auto_close int fd = -1;
	struct grep_scan scan;
	struct grep_line line;
	bool judged;

	require(fd_memory_file("text", text, &fd, NULL));
	grep_scan_init(&scan, pattern);
	grep_scan_begin(&scan, fd, true);
	while (grep_scan_next(&scan, &line)) {
		require(line.start <= line.match_start &&
			line.match_start <= line.match_end &&
			line.match_end <= line.end && line.end <= scan.size);
		require(buf_addf(out, "%zu\n", (size_t)scan.base + line.start));
	}
	judged = !scan.limited;
	grep_scan_fini(&scan);
	return judged;
}

/* The pattern as it is meant: as grep_pattern compiles it, but not rewritten. */
static bool compile_plain(struct str text, bool literal, bool ignore_case,
			  struct regex **regex)
{
	unsigned flags = ignore_case ? REGEX_IGNORE_CASE : 0;
	struct buf unicode;
	bool compiled;

	if (literal)
		return regex_compile(text, flags | REGEX_LITERAL, regex, NULL);
	buf_init(&unicode, 2 * FUZZ_PATTERN_MAX);
	require(buf_adds(&unicode, "(*UCP)") && buf_addstr(&unicode, text));
	compiled = regex_compile(buf_str(&unicode), flags | REGEX_MULTILINE, regex, NULL);
	buf_fini(&unicode);
	return compiled;
}

static void check(struct str pattern_text, struct str text, bool literal, bool ignore_case)
{
	struct grep_pattern pattern;
	struct regex *regex = NULL;
	struct buf expected, found;

	buf_init(&expected, FUZZ_ANSWER_MAX);
	buf_init(&found, FUZZ_ANSWER_MAX);
	if (grep_pattern_init(&pattern, pattern_text, literal, ignore_case, NULL) &&
	    !pattern.line_end && compile_plain(pattern_text, literal, ignore_case, &regex) &&
	    add_lines_one_by_one(regex, text, &expected) &&
	    add_lines_of_scan(&pattern, text, &found))
		require(strcmp(expected.data, found.data) == 0);
	grep_pattern_fini(&pattern);
	regex_free(regex);
	buf_fini(&expected);
	buf_fini(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str input = {(const char *)data, size};
	struct str pattern, text;
	auto_free char *padded = NULL;
	size_t border;

	if (size < 2)
		return 0;
	border = str_find(input, STR("\0"), 1);
	if (border == (size_t)-1)
		return 0;
	pattern = str_part(input, 1, border - 1);
	text = str_part(input, border + 1, FUZZ_TEXT_MAX);
	/*
	 * A model's pattern is UTF-8; before "\r" a line ends for "$" too, and verbs
	 * change all rules.
	 */
	if (pattern.size == 0 || pattern.size > FUZZ_PATTERN_MAX ||
	    !text_is_utf8(pattern) || str_starts(pattern, STR("(*")) ||
	    memchr(text.data, '\r', text.size) || text_is_binary(text))
		return 0;
	/* What lies behind a text must not decide; see BUFFER_PADDING in grep.c. */
	padded = memory_alloc(text.size + 8);
	memcpy(padded, text.data, text.size);
	text.data = padded;
	check(pattern, text, data[0] & 1, data[0] & 2);
	return 0;
}
