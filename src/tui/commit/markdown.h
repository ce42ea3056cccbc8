/*
 * markdown: the words of a model, which are Markdown, as rows of a terminal. The words come in
 * fragments; a block is shown as soon as it is complete: at a blank line, at the next item of a
 * list, behind a heading. The lines of fenced code are shown one by one, without a border and
 * without indentation, so that a copy of them is exact; neither they nor rows of a table are ever
 * broken.
 *
 * Shown are headings, emphasis, inline code, lists, quotes, links, rules and tables. A block is
 * shown as it was written, broken between words, where a part of its text would be lost otherwise
 * (the definition of a link), where a table is wider than the line, and where the block is longer
 * than MARKDOWN_BLOCK_MAX. Without colours the marks of emphasis, headings and code stay.
 *
 * md4c finds the structure inside of a block. It is loaded at the first use.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "tui/paint.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	MARKDOWN_BLOCK_MAX = 64 << 10,
	MARKDOWN_COLUMNS_MAX = 100, /* wider lines of prose are hard to read */
};

struct markdown;

/* NULL: md4c is not installed; the caller shows the words as they were written. */
struct markdown *markdown_new(void);
void markdown_free(struct markdown *markdown); /* NULL is fine */

/*
 * Add TEXT, which is clean and has complete characters, and append to the output of PAINT all rows
 * that are complete now. PAINT says how wide they may be, and which marks and colours there are.
 */
void markdown_add(struct markdown *markdown, struct paint *paint, struct str text);
/* The text has ended: append the rest. The next text is another one. */
void markdown_end(struct markdown *markdown, struct paint *paint);

/*
 * The beginning of the row that is not complete yet, as it was written; "": there is none. It is
 * valid until the next call.
 */
struct str markdown_unfinished(const struct markdown *markdown);
/* Has the present text shown anything, or does it hold anything that will be shown? */
bool markdown_has_begun(const struct markdown *markdown);
