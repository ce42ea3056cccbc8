/*
 * line_frame: what a text that is being typed looks like on a terminal, and the bytes that
 * bring the screen there from what it shows. Rows are broken here, never by the terminal, and
 * only rows that changed are written again. Pure.
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
 * The rows of LINE, behind a prompt; of a text higher than the terminal those around the
 * cursor. In the place of what would change how a row looks stands U+FFFD.
 */
void line_frame_compose(struct line_frame *frame, const struct line *line,
			const struct line_look *look);

/* Append to OUT what turns SHOWN, at whose cursor the terminal stands, into WANTED. */
void line_frame_change(const struct line_frame *shown, const struct line_frame *wanted,
		       struct buf *out);

/*
 * Append to OUT what takes SHOWN off a terminal that has COLUMNS now, whatever it had when
 * the rows were written; the terminal is taken to have broken them anew. The cursor is then
 * where the first row began.
 */
void line_frame_erase(const struct line_frame *shown, size_t columns, struct buf *out);
