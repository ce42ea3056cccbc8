/*
 * regex: PCRE2 with JIT, always with match, depth and heap limits. A match that reaches
 * a limit is reported as such, never as "no match".
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct regex;

enum regex_flags {
	REGEX_IGNORE_CASE = 1,
	REGEX_LITERAL = 2,
	REGEX_MULTILINE = 4, /* ^ and $ match at line borders */
	/*
	 * for a JSON Schema: $ only matches at the very end; \uXXXX and \u{…} are
	 * characters
	 */
	REGEX_ECMASCRIPT = 8,
};

enum regex_answer { REGEX_NONE, REGEX_FOUND, REGEX_LIMIT };

struct regex_span {
	size_t start, end; /* byte offsets */
};

/* Compile in UTF mode. Invalid UTF-8 in a subject matches nothing. */
bool regex_compile(struct str pattern, unsigned flags, struct regex **regex,
		   struct err *err);
void regex_free(struct regex *regex);

/* Several threads may use one compiled regex, each with its own scratch. */
struct regex_scratch;
struct regex_scratch *regex_scratch_new(const struct regex *regex);
void regex_scratch_free(struct regex_scratch *scratch);

/*
 * Find the first match at or after FROM; SPAN is filled when FOUND. The compiled code
 * of PCRE2 10.42 may read up to three bytes behind a text that ends inside a character.
 * JSON strings never do; a caller that searches raw bytes adds padding, as grep does.
 */
enum regex_answer regex_find(const struct regex *regex, struct regex_scratch *scratch,
			     struct str text, size_t from, struct regex_span *span);
