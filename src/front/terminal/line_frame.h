/*
 * line_frame: the rows that show a text which is being typed, and the bytes that change a
 * screen from one set of rows to another. Rows are broken here, never by the terminal,
 * and only changed rows are written again. Pure.
 *
 * Sequences: ECMA-48 CUU, CUD, CUF, EL, ED; SGR when there is colour.
 */
#pragma once
#include "base/buf.h"
#include "front/terminal/line.h"

#include <stdbool.h>
#include <stddef.h>

struct line_look {
	size_t columns, rows; /* of the terminal */
	bool colour, unicode;
};

struct line_frame {
	struct buf rows;    /* each with its line end */
	size_t row, column; /* of the cursor; from 0 */
};

void line_frame_init(struct line_frame *frame);
void line_frame_fini(struct line_frame *frame);

/*
 * Compose the rows of LINE, with a prompt before them. Of a text with more rows than the
 * terminal, compose the rows around the cursor. U+FFFD replaces characters that would
 * change the rest of the row.
 */
void line_frame_compose(struct line_frame *frame, const struct line *line,
			const struct line_look *look);

/*
 * Append to OUT the bytes that change SHOWN into WANTED. The terminal's cursor stands at
 * that of SHOWN.
 */
void line_frame_change(const struct line_frame *shown, const struct line_frame *wanted,
		       struct buf *out);

/*
 * Append to OUT the bytes that erase SHOWN from a terminal that has COLUMNS now. The
 * terminal may have had another width when the rows were written; we assume that it has
 * wrapped them again. Afterwards the cursor stands where the first row began.
 */
void line_frame_erase(const struct line_frame *shown, size_t columns, struct buf *out);
