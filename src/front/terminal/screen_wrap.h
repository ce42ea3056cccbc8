/*
 * screen_wrap: prose on a terminal, broken between its words instead of inside them. The word
 * that is coming is held until it is whole, so that nothing that stands on the screen is ever
 * moved. What is to be copied as it is stays on its line, however long: code between fences or
 * indented by four, tables, and a word that is wider than the line. Characters of two columns
 * may part anywhere but before a closing mark.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct screen_wrap {
	struct buf word;   /* held */
	size_t last;       /* columns of its last character */
	struct buf blanks; /* before it, held too */
	size_t column;     /* where the next thing stands */
	bool begun;        /* something but blanks stands on the line */
	bool torn;         /* the front of the word that is coming is shown already */
	bool as_it_is;     /* the rest of the line is not prose */
	bool fenced;       /* between fences */
};

void screen_wrap_init(struct screen_wrap *wrap);
void screen_wrap_fini(struct screen_wrap *wrap);

/* Append to OUT what of TEXT (clean, whole characters) can be shown on lines of COLUMNS. */
void screen_wrap_add(struct screen_wrap *wrap, struct str text, size_t columns,
		     struct buf *out);
/* No more is coming: the rest; the next text begins at column AT of a line. */
void screen_wrap_end(struct screen_wrap *wrap, size_t columns, size_t at, struct buf *out);
