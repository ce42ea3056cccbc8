/*
 * change: a unified diff as a person sees it. The lines stand as they are, so that a copy of them is a
 * patch; their colours say what they are, and in two lines that are alike the words that differ
 * are underlined as well. The lines are told apart by the counts in the heads of their hunks: a
 * removed line "-- a" is no head of a file.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "tui/paint.h"

#include <stddef.h>

/* The lines and files that a diff changes. */
struct change_summary {
	size_t files, added, removed;
	struct str path; /* of the first file, as its head names it: without "b/" */
	size_t line; /* the first one that is changed, in the new text; 0: not known */
};

void change_summarise(struct str diff, struct change_summary *summary);

/*
 * Append DIFF, which is clean, with the colours of LOOK. Without colours it is appended as it is.
 */
void change_paint(const struct paint *look, struct str diff, struct buf *out);
