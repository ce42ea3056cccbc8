/*
 * diff_lines: which lines of two texts are not common to both: Myers, "An O(ND)
 * Difference Algorithm and Its Variations" (1986), section 4b, the linear-space
 * refinement.
 */
#pragma once
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The lines of one text. */
struct diff_side {
	struct str text;
	size_t count;
	size_t *starts; /* count + 1 offsets */
	uint32_t *ids;  /* equal lines have equal numbers, over both sides */
	bool *changed;  /* count + 1, the last always false */
};

struct diff_sides {
	struct diff_side old_side, new_side;
	size_t skipped; /* equal lines before both that are not part of them */
};

void diff_lines_init(struct diff_sides *sides, struct str old_text, struct str new_text);
void diff_lines_fini(struct diff_sides *sides);

/* Fill `changed` of both sides. */
void diff_lines_compare(struct diff_sides *sides);

/*
 * Line I with its line end: a last line without one differs from the same line with one.
 */
struct str diff_line(const struct diff_side *side, size_t i);
