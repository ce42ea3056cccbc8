/*
 * match: where the old text of an edit stands in a file. Levels from exact to a uniformly
 * different indent; each is tried only when the one before found nothing. No guess by
 * distance, no anchors: what is found has the same number of lines and differs in nothing
 * but what its level names.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum match_level {
	MATCH_NONE,
	MATCH_EXACT,
	MATCH_LINE_END,       /* CRLF for LF or the other way round */
	MATCH_TRAILING_SPACE, /* and blanks at line ends */
	MATCH_PUNCTUATION,    /* and typographic quotes, dashes, blanks for plain ones */
	MATCH_INDENT, /* all lines deeper or less deep by the same, or tabs for blanks */
	MATCH_LINE_NUMBERS, /* exact, once the line numbers of a reading are taken out */
};
const char *match_level_name(enum match_level level);     /* "trailing_space" */
const char *match_level_sentence(enum match_level level); /* for the model */

struct match_span {
	size_t start, end; /* bytes of the file */
};

/* Kept of one text's places. More than this many are not an edit any more. */
enum { MATCH_SPANS_MAX = 1 << 20 };

struct match {
	enum match_level level;
	struct match_span *spans; /* in order; not overlapping when ALL */
	size_t count;
	bool whole_lines;       /* set it before match_find: only these count */
	struct buf replacement; /* what takes the place of each span */
};
void match_init(struct match *match);
void match_fini(struct match *match);

/*
 * Find OLD in TEXT up to level HIGHEST. Without ALL every place counts, overlapping ones
 * too, so that a count of one is unique. ALL: all places, exact or by line ends only.
 * False when nothing was found.
 */
bool match_find(struct str text, struct str old, struct str replacement, bool all,
		enum match_level highest, struct match *match);

/* 1-based line of the byte at AT. */
size_t match_line(struct str text, size_t at);

/* Used by match_find (match_indent.c, match_numbers.c): fill MATCH at their level. */
void match_indent(struct str text, struct str old, struct str replacement,
		  struct match *match);
void match_numbers(struct str text, struct str old, struct str replacement,
		   struct match *match);
/* Exact places of OLD; ALL: without overlap. */
void match_exact(struct str text, struct str old, bool all, struct match *match);
void match_add(struct match *match, size_t start, size_t end);

/*
 * Does each line of TEXT begin with a number and a tab, as read_file shows them? The
 * first in *FIRST.
 */
bool match_is_numbered(struct str text, size_t *first);
