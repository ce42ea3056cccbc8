/*
 * edit: several edits of one text, all against the original, disjoint, all or nothing.
 * Pure: text in, text out; edit_file.c does the files.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"
#include "tools/match.h"
#include "tools/shown.h"

#include <stdbool.h>
#include <stddef.h>

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

/* Most edits of one call, and most places one call may change. */
enum { EDIT_MAX = 1000 };

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

/* Places and lines that are named as the nearest to a text that was not found. */
enum { EDIT_NEAR = 3 };
/*
 * Append to SENTENCE the places where OLD nearly stands in TEXT, and how it differs there
 * (edit_miss.c).
 */
void edit_explain_miss(struct str text, struct str old, struct buf *sentence);
/* Append the lines of TEXT that are nearest to the line WANTED, with their numbers. */
void edit_add_nearest(struct str text, struct str wanted, struct buf *out);
/* Append "lines 3 (after `…`), 9": the places of MATCH in TEXT. */
void edit_add_places(struct str text, const struct match *match, struct buf *out);
