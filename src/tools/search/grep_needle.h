/*
 * grep_needle: a literal found by its two rarest bytes, compared at 64 places at once:
 * what cannot hold it is passed over at the speed of memory.
 */
#pragma once
#include "base/str.h"

#include <stddef.h>

struct grep_needle {
	char *data; /* owned */
	size_t size;
	size_t rare,
		/* offsets of its rarest bytes; the same in a needle of one byte */
		next_rare;
};

/* Make NEEDLE (zeros) look for a copy of TEXT. */
void grep_needle_set(struct grep_needle *needle, struct str text);
void grep_needle_fini(struct grep_needle *needle);

/* Offset of NEEDLE (not empty) in TEXT at or after FROM, or (size_t)-1. */
size_t grep_needle_find(const struct grep_needle *needle, struct str text, size_t from);
