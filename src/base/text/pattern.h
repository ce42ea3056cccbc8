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

/*
 * Hand each pattern that PATTERN (well-formed) stands for to EACH, without braces, until
 * one answers true; was there one?
 */
bool pattern_each(struct str pattern, unsigned flags,
		  bool (*each)(void *owner, struct str one), void *owner);

/*
 * A pattern to be held against many paths, taken apart once. NULL when it is not
 * well-formed. The same answers as pattern_match, several times as fast.
 */
struct pattern_set;
struct pattern_set *pattern_set_new(struct str pattern, unsigned flags);
void pattern_set_free(struct pattern_set *set);
/* NULL fits nothing. */
bool pattern_set_match(const struct pattern_set *set, struct str path);

/* Does TEXT hold a character that makes it a pattern? */
bool pattern_is_one(struct str text);
