/*
 * changes: what was done to a text, so that it can be undone. The newest changes are kept, up
 * to a number and a size. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	CHANGES_MAX = 200,
	CHANGES_BYTES_MAX = 8 << 20, /* of removed text; twice the longest text */
};

struct change {
	size_t at;       /* where in the text */
	size_t inserted; /* so many bytes are there now … */
	char *removed;   /* … in place of these; owned, or NULL */
	size_t removed_size;
	size_t cursor; /* where it was before */
	unsigned step; /* changes of one step are undone together */
};

struct changes {
	struct change items[CHANGES_MAX]; /* a ring, from the oldest to the newest */
	size_t first, count;
	size_t bytes; /* of all removed texts */
	unsigned step;
};

void changes_init(struct changes *changes);
void changes_clear(struct changes *changes); /* forget all; the end as well */

/* The changes noted from now on are a step of their own. */
void changes_begin(struct changes *changes);

/* At AT, INSERTED bytes take the place of REMOVED. CURSOR is where it was before. */
void changes_note(struct changes *changes, size_t at, struct str removed, size_t inserted,
		  size_t cursor);

/* Undo the newest step in TEXT and *CURSOR. False: there is none. */
bool changes_undo(struct changes *changes, struct buf *text, size_t *cursor);
