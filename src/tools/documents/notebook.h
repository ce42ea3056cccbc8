/*
 * notebook: the cells of a Jupyter notebook (nbformat 4): shown as text, and changed one at
 * a time. Its text is parsed as JSON first. The place of each cell in the text is then
 * found by a second pass, so that a change replaces the bytes of one cell and keeps all
 * others as they are.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>

/* The maximum of bytes of an output that are shown, and of pictures in one answer. */
enum { NOTEBOOK_OUTPUT_MAX = 2000, NOTEBOOK_PICTURES_MAX = 3 };

struct notebook_span {
	size_t start, end;
};

/* TEXT is borrowed from the caller. */
struct notebook {
	struct str text;
	struct value *root;
	const struct value *cells;   /* a member of ROOT */
	struct notebook_span list;   /* of the cells, with the brackets */
	struct notebook_span *spans; /* of each cell */
	size_t count;
	bool has_ids; /* from nbformat 4.5 on each cell has an id */
};

/*
 * False (ERR: half a sentence): TEXT is no notebook of this form. Call notebook_close in
 * either case.
 */
bool notebook_open(struct notebook *notebook, struct str text, struct err *err);
void notebook_close(struct notebook *notebook);

/*
 * Append the cells FIRST to LAST (from 1, inclusive) to RESULT, in about MAX_BYTES, and
 * their pictures up to PICTURES. Cells without room are named.
 */
void notebook_show(const struct notebook *notebook, size_t first, size_t last,
		   size_t max_bytes, size_t pictures, struct tool_result *result);

enum notebook_action { NOTEBOOK_REPLACE, NOTEBOOK_INSERT, NOTEBOOK_DELETE };

struct notebook_edit {
	enum notebook_action action;
	size_t cell;       /* from 1; of an inserted cell: the number that it gets */
	const char *kind;  /* "code", "markdown", "raw"; NULL: as it is */
	struct str source; /* of the new text */
};

/*
 * Append the text of the notebook after EDIT to OUT. A replaced code cell loses its outputs
 * and its count, which were those of the old source. False (ERR: a sentence): there is no
 * such cell, or OUT is full.
 */
bool notebook_apply(const struct notebook *notebook, const struct notebook_edit *edit,
		    struct buf *out, struct err *err);
