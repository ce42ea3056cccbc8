/*
 * grep_pattern: takes a pattern apart once, so that most bytes never meet the regex
 * engine. A literal that each match must hold is searched first. Where no part of the
 * pattern can match a line end, whole blocks are searched instead of single lines. The
 * answers are those of one search per line, without its "\n".
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/text/regex.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Finds a literal by its two rarest bytes, compared at 64 places at the same time. Places
 * that cannot hold the literal are skipped at the speed of memory.
 */

struct grep_needle {
	char *data; /* owned */
	size_t size;
	size_t rare,
		/*
		 * offsets of its rarest bytes; both are the same in a needle of one byte
		 */
		next_rare;
};

/* Make NEEDLE (zeros) look for a copy of TEXT. */
void grep_needle_set(struct grep_needle *needle, struct str text);
void grep_needle_fini(struct grep_needle *needle);

/* Offset of NEEDLE (not empty) in TEXT at or after FROM, or (size_t)-1. */
size_t grep_needle_find(const struct grep_needle *needle, struct str text, size_t from);

/*
 * Each needle needs one more pass over the text. With more needles the regex itself is as
 * fast.
 */
enum { GREP_NEEDLES_MAX = 8 };

struct grep_pattern {
	/*
	 * Each match holds one of these needles, one per alternative. Without needles
	 * nothing is known.
	 */
	struct grep_needle needles[GREP_NEEDLES_MAX];
	size_t needle_count;
	struct regex *regex; /* NULL: the needles are the whole pattern */
	bool by_line;        /* the regex must be given single lines */
	bool drop_cr;        /* lines are matched without their "\r" */
	bool line_end;       /* it asks for a line end, so nothing can match */
};

/*
 * Compile TEXT. In the regex "$" also matches before a "\r" that ends the line. ERR says
 * what is wrong with TEXT. Call grep_pattern_fini afterwards, also after a failure.
 */
bool grep_pattern_init(struct grep_pattern *pattern, struct str text, bool literal,
		       bool ignore_case, struct err *err);
void grep_pattern_fini(struct grep_pattern *pattern);
