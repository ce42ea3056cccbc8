/*
 * pattern_match: one pattern without braces against one path, for pattern.c,
 * pattern_set.c and ignore.c.
 * Two restore points and no recursion: time is at most the product of both lengths.
 */
#pragma once
#include "base/str.h"

#include <stdbool.h>

/* The answer of a bracket expression to one character. */
struct pattern_bracket {
	size_t size; /* with both brackets; 0: not closed, or an unknown [:class:] */
	bool contains;
};

/*
 * FLAGS as in base/text/pattern.h; with PATTERN_BRACES a character is UTF-8, else a byte, as
 * git's.
 */
struct pattern_bracket pattern_bracket_read(struct str text, unsigned flags, unsigned c);

bool pattern_match_plain(struct str pattern, struct str path, unsigned flags);

/*
 * The plain bytes at both ends of a pattern: enough to reject most texts without the
 * matcher.
 */
struct pattern_ends {
	size_t head, tail; /* bytes each of them begins and ends with */
	/* between the two stands one "*" and nothing else: in a name they decide alone */
	bool one_star;
};

struct pattern_ends pattern_ends_of(struct str pattern);

/* False: PATTERN, whose ends ENDS are, cannot match TEXT. */
bool pattern_ends_fit(const struct pattern_ends *ends, struct str pattern, struct str text);

/* The same answer as pattern_match_plain, sooner. NAME holds no slash. */
bool pattern_match_name(const struct pattern_ends *ends, struct str pattern,
			struct str name, unsigned flags);
