/*
 * edit: several edits of one text, all against the original, disjoint, all or nothing.
 * Pure: text in, text out; edit.c does the files.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "tools/shown.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Where the old text of an edit stands in a file. Levels from exact to a uniformly
 * different indent; each is tried only when the one before found nothing. No guess by
 * distance, no anchors: what is found has the same number of lines and differs in
 * nothing but what its level names.
 */

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

struct edit {
	struct str old, new;
	bool replace_all;
};

/* The result of one edit. */
struct edit_outcome {
	enum match_level level;
	size_t count;           /* places changed */
	size_t line;            /* of the first */
	bool already;           /* the new text stood there before: nothing was changed */
	enum shown_end end_set; /* the new text was given these line ends, the file's */
};

/* How edits (and the hunks of a patch) are made; flags. */
enum edit_how {
	EDIT_EXACT_ONLY =
		1, /* only exact, single places: the file is not the one that was read */
	EDIT_GIVEN_ENDS = 2, /* the new text keeps the line ends it has */
};

/*
 * Apply COUNT edits to TEXT; OUT becomes the new text. HOW: flags of edit_how. False:
 * SENTENCE says which edit, what was found instead, and what would work; OUT is then not to
 * be used. SHOWN names the file in sentences.
 */
bool edit_apply(const char *shown, struct str text, const struct edit *edits,
		size_t count, unsigned how, struct buf *out,
		struct edit_outcome *outcomes, struct buf *sentence);

/*
 * NEW, which goes to the byte AT of TEXT, gets the line ends that all of TEXT has. Where TEXT
 * mixes them (ENDS) it gets those of that place, unless it mixes them, too. Returns which it was
 * given; SHOWN_END_NONE: it had them, or there are none to give.
 */
enum shown_end edit_fit_line_ends(struct str text, const struct shown_ends *ends,
				  size_t at, struct buf *new);

/*
 * Do OLD and NEW share enough at their ends for NEW to tell that an edit was made before
 * where it stands?
 */
bool edit_shares_enough(struct str old, struct str new);
/*
 * Append to SENTENCE the places where OLD nearly stands in TEXT, and how it differs there
 * (edit.c).
 */
void edit_explain_miss(struct str text, struct str old, struct buf *sentence);
/* Append the lines of TEXT that are nearest to the line WANTED, with their numbers. */
void edit_add_nearest(struct str text, struct str wanted, struct buf *out);
/* Append "lines 3 (after `…`), 9": the places of MATCH in TEXT. */
void edit_add_places(struct str text, const struct match *match, struct buf *out);
