/*
 * grep_pattern: what a pattern looks for, taken apart once so that most bytes never meet
 * the regex engine: a literal that each match must hold is looked for first, and where no
 * part of the pattern can match a line end, whole blocks are searched instead of single
 * lines. The answers are those of one search per line, without its "\n".
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/text/regex.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * A literal found by its two rarest bytes, compared at 64 places at once: what cannot
 * hold it is passed over at the speed of memory.
 */

struct grep_needle {
	char *data; /* owned */
	size_t size;
	size_t rare,
		/* offsets of its rarest bytes; the same in a needle of one byte */
		next_rare;
};

/* Make NEEDLE (zeros) look for a copy of TEXT. */
void grep_needle_set(struct grep_needle *needle, struct str text);
void grep_needle_fini(struct grep_needle *needle);

/* Offset of NEEDLE (not empty) in TEXT at or after FROM, or (size_t)-1. */
size_t grep_needle_find(const struct grep_needle *needle, struct str text, size_t from);

/* Each needle is one more pass over the text: with more of them the regex alone is as fast. */
enum { GREP_NEEDLES_MAX = 8 };

struct grep_pattern {
	/* Each match holds one of these: one per alternative. None: nothing is known. */
	struct grep_needle needles[GREP_NEEDLES_MAX];
	size_t needle_count;
	struct regex *regex; /* NULL: the needles are all there is to find */
	bool by_line;        /* the regex must be given single lines */
	bool drop_cr;        /* without their "\r" */
	bool line_end;       /* asks for a line end, so nothing can match */
};

/*
 * Compile PATTERN. The regex sees "$" before a "\r" that ends the line, too. ERR says
 * what is wrong with it. Given back by grep_pattern_fini, also after a failure.
 */
bool grep_pattern_init(struct grep_pattern *pattern, struct str text, bool literal,
		       bool ignore_case, struct err *err);
void grep_pattern_fini(struct grep_pattern *pattern);
