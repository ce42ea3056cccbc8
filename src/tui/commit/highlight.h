/*
 * highlight: colours of code: keywords, strings, comments and numbers of twenty languages, line by
 * line. It knows how these look and nothing of the grammar: a mistake is a wrong colour. The bytes of
 * a line stay as they are.
 */
#pragma once

#include "base/str.h"
#include "tui/paint.h"

struct language; /* a row of the table */

/* Where the reader of a text stands, between two lines. All zero: no language, no colours. */
struct highlight {
	const struct language *language;
	const char *until; /* what ends the comment or string that goes on, or NULL */
	enum paint_style style;
};

/* Begin a text in the language NAME: what stands behind a fence, or the ending of a file's name. */
void highlight_begin(struct highlight *highlight, struct str name);
/* Likewise for a file, by its PATH. */
void highlight_begin_file(struct highlight *highlight, struct str path);

/* Append LINE, which is clean and has no line end. */
void highlight_line(struct highlight *highlight, struct paint *paint, struct str line);
