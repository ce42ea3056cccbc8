/*
 * edit: several edits of one text, all against the original, disjoint, all or nothing.
 * Pure: text in, text out; edit_file.c does the files.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"
#include "tools/match.h"

#include <stdbool.h>
#include <stddef.h>

struct edit {
	struct str old, new;
	bool replace_all;
};

/* What became of one edit. */
struct edit_outcome {
	enum match_level level;
	size_t count;        /* places changed */
	size_t line;         /* of the first */
	bool already;        /* the new text stood there before: nothing was changed */
	bool line_ends_made; /* the new text was given the file's CRLF */
};

/* Most edits of one call, and most places one call may change. */
enum { EDIT_MAX = 1000 };

/*
 * Apply COUNT edits to TEXT; OUT becomes the new text. EXACT_ONLY: nothing but exact,
 * single places (the file is not the one that was read). False: SENTENCE says which edit,
 * what was found instead, and what would work; OUT is then not to be used. SHOWN names
 * the file in sentences.
 */
bool edit_apply(const char *shown, struct str text, const struct edit *edits,
		size_t count, bool exact_only, struct buf *out,
		struct edit_outcome *outcomes, struct buf *sentence);

/*
 * NEW, which goes to the byte AT of TEXT, gets the line ends of that place unless it brings
 * CRs of its own. Was anything to be done?
 */
bool edit_fit_line_ends(struct str text, size_t at, struct buf *new);

/*
 * Do OLD and NEW share enough at their ends for NEW to tell that an edit was made before
 * where it stands?
 */
bool edit_shares_enough(struct str old, struct str new);

/*
 * Append to SENTENCE where OLD nearly stands in TEXT and how it differs there
 * (edit_miss.c).
 */
void edit_explain_miss(struct str text, struct str old, struct buf *sentence);
