/*
 * regex: PCRE2 with JIT, always with match, depth and heap limits. A match that meets
 * a limit says so; it is never reported as "no match".
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
	REGEX_MULTILINE = 4, /* ^ and $ at line borders */
	/* of a JSON Schema: $ at the very end only, \uXXXX and \u{…} are characters */
	REGEX_ECMASCRIPT = 8,
};

enum regex_answer { REGEX_NONE, REGEX_FOUND, REGEX_LIMIT };

struct regex_span {
	size_t start, end; /* byte offsets */
};

/* UTF mode, invalid UTF-8 in subjects is matched as bytes that match nothing. */
bool regex_compile(struct str pattern, unsigned flags, struct regex **regex,
		   struct err *err);
void regex_free(struct regex *regex);

/* One compiled regex may be used by several threads; each brings a scratch. */
struct regex_scratch;
struct regex_scratch *regex_scratch_new(const struct regex *regex);
void regex_scratch_free(struct regex_scratch *scratch);

/*
 * The first match at or after FROM. SPAN is filled when FOUND. The compiled code of PCRE2
 * 10.42 may look at up to three bytes behind a text that ends in a cut character. JSON
 * strings never end so; a caller that searches raw bytes pads them, as grep does.
 */
enum regex_answer regex_find(const struct regex *regex, struct regex_scratch *scratch,
			     struct str text, size_t from, struct regex_span *span);
