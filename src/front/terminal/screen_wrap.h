/*
 * screen_wrap: prose on a terminal, broken between its words instead of inside them. A
 * word is held until it is complete, so that nothing on the screen ever moves. Text for
 * copying stays on its line, however long: code between fences or indented by four,
 * tables, and a word that is wider than the line. Between characters of two columns a
 * line may end anywhere, except before a closing mark.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct screen_wrap {
	struct buf word;   /* held */
	size_t last;       /* columns of its last character */
	struct buf blanks; /* held as well: the blanks before the word */
	size_t column;     /* the column of the next character */
	bool begun;        /* the line has a character that is not a blank */
	bool torn;         /* the beginning of the coming word is shown already */
	bool as_it_is;     /* the rest of the line is not prose */
	bool fenced;       /* between fences */
};

void screen_wrap_init(struct screen_wrap *wrap);
void screen_wrap_fini(struct screen_wrap *wrap);

/*
 * Add TEXT (clean, complete characters), and append to OUT all that can be shown now, on
 * lines of COLUMNS.
 */
void screen_wrap_add(struct screen_wrap *wrap, struct str text, size_t columns,
		     struct buf *out);
/*
 * The text has ended: append the rest to OUT. The next text begins at column AT of a
 * line.
 */
void screen_wrap_end(struct screen_wrap *wrap, size_t columns, size_t at, struct buf *out);
