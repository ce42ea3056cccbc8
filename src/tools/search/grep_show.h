/*
 * grep_show: the matching lines of one file as a model reads them: number, text, context,
 * long lines cut around the match.
 */
#pragma once
#include "base/buf.h"
#include "base/value.h"
#include "tools/search/grep_scan.h"

#include <stddef.h>
#include <stdint.h>

enum {
	/*
	 * Most bytes of a line shown: a minified file must not fill the answer. Less than
	 * read_file shows, as there may be many.
	 */
	GREP_LINE_MAX = 500,
};

struct grep_show {
	struct grep_scan *scan; /* begun; its `leaving` is set here */
	size_t context;
	uint64_t skip;   /* matching lines not shown first */
	uint64_t want;   /* then at most so many shown */
	size_t text_max; /* and no further one once OUT holds so much */
	struct buf *out;
	struct value *rows; /* gets one object per line shown */
	const char *name;   /* of the file, for the rows */

	uint64_t shown;
	uint64_t next;        /* offset in the file behind the last line shown */
	uint64_t line_at;     /* a line begins here … */
	uint64_t line_number; /* … with this number */
	size_t after_left;    /* lines of context still due */
	uint64_t first_cut;   /* number of the first line shown in part; 0: none is */
	uint64_t gap;         /* where in it the bytes are that are left out */
};

/* Show; SHOWN then says how many lines there were. */
void grep_show_file(struct grep_show *show);
