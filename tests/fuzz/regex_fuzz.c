/*
 * Fuzz target of base/regex: first byte flags, then a pattern up to a line end, then a text
 * in which all matches are looked for. Spans must be in the text and in order.
 */
#include "base/text/regex.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A match that takes long, for each byte of the text, would take very long. */
enum { MATCHES_MAX = 8 };

static void find_all(const struct regex *regex, struct str text)
{
	struct regex_scratch *scratch = regex_scratch_new(regex);
	size_t from = 0;

	for (int i = 0; i < MATCHES_MAX; i++) {
		struct regex_span span = {SIZE_MAX, SIZE_MAX};
		enum regex_answer answer = regex_find(regex, scratch, text, from, &span);

		if (answer != REGEX_FOUND)
			break;
		if (span.start > span.end || span.end > text.size || span.end < from)
			abort();
		from = span.end > from ? span.end : from + 1;
	}
	regex_scratch_free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size}, pattern;
	struct regex *regex = NULL;
	struct err err = {0};
	unsigned flags;

	if (size == 0)
		return 0;
	flags = data[0] & (REGEX_IGNORE_CASE | REGEX_LITERAL | REGEX_MULTILINE);
	text = str_part(text, 1, size);
	if (!str_next_line(&text, &pattern))
		return 0;
	if (regex_compile(pattern, flags, &regex, &err))
		find_all(regex, text);
	else if (err.text[0] == '\0' || regex)
		abort();
	regex_free(regex);
	return 0;
}
