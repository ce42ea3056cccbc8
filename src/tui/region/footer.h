/*
 * footer: the last row, below the line that is typed: short facts about the conversation, in
 * the order in which they were added. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "tui/paint.h"

#include <stddef.h>

enum {
	FOOTER_PARTS_MAX = 8,
	FOOTER_PART_COLUMNS = 32, /* a longer fact is cut */
	FOOTER_PART_MAX = 256,    /* bytes of such a fact */
};

/* A value, which is copied by assignment. Its zero has no parts. */
struct footer {
	struct footer_part {
		char text[FOOTER_PART_MAX]; /* clean, on one line */
		enum paint_style style;
	} parts[FOOTER_PARTS_MAX];
	size_t count;
};

/* Add TEXT, any bytes. An empty one adds nothing, nor does one behind FOOTER_PARTS_MAX others. */
void footer_add(struct footer *footer, enum paint_style style, struct str text);
/*
 * Append the row to PAINT, without its line end. Parts that do not fit into COLUMNS are left
 * out, from the right.
 */
void footer_paint(const struct footer *footer, struct paint *paint, size_t columns);
