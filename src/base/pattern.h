/*
 * pattern: file name patterns. Two dialects, one matcher:
 *   glob       *  ?  [a-z] [!x]  {a,b}  and ** for any depth
 *   gitignore  the same without braces (gitignore(5); wildmatch with WM_PATHNAME)
 * Matching is bounded: no exponential blow-up on any pattern.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

enum pattern_flags {
	PATTERN_BRACES = 1,
	PATTERN_BASENAME = 2, /* a pattern without a slash matches the last name at any depth */
	PATTERN_IGNORE_CASE = 4,
};

/* Longest pattern taken, and most alternatives its braces may expand to. */
enum { PATTERN_MAX = 4096, PATTERN_ALTERNATIVES_MAX = 1024 };

/*
 * Is PATTERN well-formed (brackets and braces closed, in the limits)? ERR says why not.
 */
bool pattern_check(struct str pattern, unsigned flags, struct err *err);

/* Does PATTERN match the whole of PATH (components separated by '/', none leading)? */
bool pattern_match(struct str pattern, struct str path, unsigned flags);

/* Does TEXT hold a character that makes it a pattern? */
bool pattern_is_one(struct str text);
