/*
 * edit: several edits of one text, all against the original text, without overlaps, all
 * or nothing. The functions here are pure: text in, text out.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "tools/shown.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Finds the place of an edit's old text in a file. The levels go from an exact match to a
 * uniformly different indent, and each is tried only when the one before found nothing.
 * There are no guesses by distance and no anchors: a match has the same number of lines
 * as the old text, and differs from it only in what its level names.
 */

enum match_level {
	MATCH_NONE,
	MATCH_EXACT,
	MATCH_LINE_END,       /* CRLF for LF or the other way round */
	MATCH_TRAILING_SPACE, /* also blanks at line ends */
	/* also typographic quotes, dashes and blanks for plain ones */
	MATCH_PUNCTUATION,
	/* all lines indented more or less by the same amount, or tabs for blanks */
	MATCH_INDENT,
	MATCH_LINE_NUMBERS, /* exact after the line numbers of a reading are removed */
};
const char *match_level_name(enum match_level level);     /* "trailing_space" */
const char *match_level_sentence(enum match_level level); /* for the model */

struct match_span {
	size_t start, end; /* bytes of the file */
};

/* The most places that are kept for one text. A text with more places is no edit. */
enum { MATCH_SPANS_MAX = 1 << 20 };

struct match {
	enum match_level level;
	struct match_span *spans; /* sorted; without overlap when ALL */
	size_t count;
	/* set it before match_find: only whole lines count as a match */
	bool whole_lines;
	struct buf replacement; /* the text that replaces each span */
};
void match_init(struct match *match);
void match_fini(struct match *match);

/*
 * Find OLD in TEXT up to level HIGHEST. Without ALL every place counts, also overlapping
 * ones, so that a count of one means a unique place. ALL: find all places, exact or
 * different only in line ends. False when nothing was found.
 */
bool match_find(struct str text, struct str old, struct str replacement, bool all,
		enum match_level highest, struct match *match);

/* The line, counted from 1, of the byte at AT. */
size_t match_line(struct str text, size_t at);

struct edit {
	struct str old, new;
	bool replace_all;
};

/* The result of one edit. */
struct edit_outcome {
	enum match_level level;
	size_t count; /* places changed */
	size_t line;  /* of the first */
	/* the new text was there before, so nothing was changed */
	bool already;
	enum shown_end end_set; /* the new text got these line ends, which the file has */
};

/* Flags for making edits and the hunks of a patch. */
enum edit_how {
	EDIT_EXACT_ONLY =
		1, /* only exact, single places: the file is not the one that was read */
	EDIT_GIVEN_ENDS = 2, /* the new text keeps its own line ends */
};

/*
 * Apply COUNT edits to TEXT; OUT becomes the new text. HOW: flags of edit_how. False:
 * SENTENCE says which edit failed, what was found instead, and what would work; OUT must
 * not be used then. SHOWN names the file in sentences.
 */
bool edit_apply(const char *shown, struct str text, const struct edit *edits,
		size_t count, unsigned how, struct buf *out,
		struct edit_outcome *outcomes, struct buf *sentence);

/*
 * Give NEW, which goes to the byte AT of TEXT, the line ends that all lines of TEXT have.
 * When TEXT mixes line ends (ENDS), NEW gets those at its place, unless NEW mixes them
 * too. Returns the line end that was set; SHOWN_END_NONE: nothing was set.
 */
enum shown_end edit_fit_line_ends(struct str text, const struct shown_ends *ends,
				  size_t at, struct buf *new);

/*
 * Do OLD and NEW share so much at their ends that NEW in the text shows that the edit was
 * made before?
 */
bool edit_shares_enough(struct str old, struct str new);
/*
 * Append to SENTENCE the places where OLD nearly stands in TEXT, and how it differs
 * there.
 */
void edit_explain_miss(struct str text, struct str old, struct buf *sentence);
/* Append the lines of TEXT that are nearest to the line WANTED, with their numbers. */
void edit_add_nearest(struct str text, struct str wanted, struct buf *out);
/* Append "lines 3 (after `…`), 9": the places of MATCH in TEXT. */
void edit_add_places(struct str text, const struct match *match, struct buf *out);
