/*
 * grep: the matching lines of one file after the other, through one buffer that every
 * file uses again: memory stays the same however large a file is. A line longer than the
 * buffer is searched in overlapping pieces and counts once. Binary files have no lines.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "base/text/regex.h"
#include "tools/search/grep_pattern.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of source files by name ("c", "python"), each a few name patterns. */

struct file_type {
	const char *names;    /* blank-separated, the usual one first */
	const char *patterns; /* blank-separated */
};

/* NULL: the type is not known. A leading dot is ignored. */
const struct file_type *file_type_find(const char *name);
bool file_type_fits(const struct file_type *type, struct str file_name);

enum {
	/* This fits into a core's own cache, and most files are read by one call. */
	GREP_BUFFER = 256 << 10,
	/*
	 * The size until a larger file comes. The C library asks the kernel for larger
	 * blocks each time, so this size lets a search of a few files reuse the memory of
	 * the last search.
	 */
	GREP_BUFFER_FIRST = 64 << 10,
	/*
	 * The part of a line, cut by the end of the buffer, that is searched again with
	 * the next piece.
	 */
	GREP_OVERLAP = 4 << 10,
	/* The most bytes that are kept for lines of context before a match. */
	GREP_KEEP = 64 << 10,
	/*
	 * The most lines of one scan on which the regex may meet its limits, which takes
	 * 0.1 s each. Such a pattern seldom meets them on a few lines only, and other
	 * searches wait meanwhile.
	 */
	GREP_LIMITED_MAX = 16,
};

struct grep_line {
	size_t start, end;             /* offsets in the scan's data, without "\n" */
	size_t match_start, match_end; /* in the scan's data */
};

struct grep_scan {
	const struct grep_pattern *pattern;
	struct regex_scratch *scratch;
	/* number of lines that stay in the data before the part that is searched */
	size_t keep_lines;
	/* Called from time to time: must the scan stop? */
	bool (*stopped)(void *stop_owner);
	void *stop_owner;
	/* Called before the data up to `limit` is dropped; or NULL. */
	void (*leaving)(void *leave_owner, struct grep_scan *scan);
	void *leave_owner;

	int fd;
	char *data;
	size_t room;   /* of data */
	uint64_t base; /* the offset of data[0] in the file */
	size_t size;   /* bytes in data */
	size_t limit;  /* whole lines up to here */
	size_t at;     /* searched up to here, the start of a line */
	/* the piece of a cut line that begins here was counted before */
	uint64_t counted_at;
	uint64_t last_hit;
	/*
	 * The next place of each needle, when it is at or behind `at`. Beyond `limit`:
	 * there is none.
	 */
	size_t next[GREP_NEEDLES_MAX];
	size_t slow_until;    /* search up to here line by line */
	bool short_is_end;    /* a short read is the end of the file */
	unsigned found_calls; /* calls of the regex */
	unsigned limits;      /* how often it met its limits, in all files */
	bool at_end, checked;
	bool ended; /* it was stopped, or met its limits too often */
	/* Facts about the file, for the answer. */
	bool binary, binary_hit, failed, limited;
};

void grep_scan_init(struct grep_scan *scan, const struct grep_pattern *pattern);
void grep_scan_fini(struct grep_scan *scan);

/* Begin the file FD, which the caller closes. */
void grep_scan_begin(struct grep_scan *scan, int fd, bool short_is_end);
/*
 * Find the next matching line. False at the end; `binary`, `failed` and `limited` are
 * then set.
 */
bool grep_scan_next(struct grep_scan *scan, struct grep_line *line);
