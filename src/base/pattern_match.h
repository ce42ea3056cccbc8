/*
 * pattern_match: one pattern without braces against one path, for pattern.c and ignore.c.
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
 * FLAGS as in base/pattern.h; with PATTERN_BRACES a character is UTF-8, else a byte, as
 * git's.
 */
struct pattern_bracket pattern_bracket_read(struct str text, unsigned flags, unsigned c);

bool pattern_match_plain(struct str pattern, struct str path, unsigned flags);
