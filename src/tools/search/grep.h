/*
 * grep: the matching lines of one file after the other, through one buffer that is
 * used again: memory stays flat however large a file is. A line longer than the buffer is
 * searched in overlapping pieces and counts once. Binary files have no lines.
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

/* NULL: unknown. A leading dot is passed over. */
const struct file_type *file_type_find(const char *name);
bool file_type_fits(const struct file_type *type, struct str file_name);

enum {
	/* Fits a core's own cache; most files are read by one call. */
	GREP_BUFFER = 256 << 10,
	/*
	 * Until one is larger: below what the C library asks the kernel for each time, so
	 * that a search of a few files finds it where the last one left it.
	 */
	GREP_BUFFER_FIRST = 64 << 10,
	/* Of a line cut by the end of the buffer, searched again with the next piece. */
	GREP_OVERLAP = 4 << 10,
	/* Most bytes kept for lines of context before a match. */
	GREP_KEEP = 64 << 10,
	/*
	 * Lines of one scan on which the regex may meet its limits, 0.1 s each: such a pattern seldom
	 * meets them on a few only, and other searches wait meanwhile.
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
	size_t keep_lines; /* that must stay in the data before what is searched */
	/* Asked now and then whether to stop. */
	bool (*stopped)(void *stop_owner);
	void *stop_owner;
	/* Told when the data up to `limit` goes; or NULL. */
	void (*leaving)(void *leave_owner, struct grep_scan *scan);
	void *leave_owner;

	int fd;
	char *data;
	size_t room;   /* of data */
	uint64_t base; /* offset in the file of data[0] */
	size_t size;   /* bytes in data */
	size_t limit;  /* whole lines up to here */
	size_t at;     /* searched up to here, the start of a line */
	/* the piece of a cut line that begins here was counted before */
	uint64_t counted_at;
	uint64_t last_hit;
	/* Where each needle stands next, if at or behind `at`; beyond `limit`: nowhere. */
	size_t next[GREP_NEEDLES_MAX];
	size_t slow_until;    /* search up to here line by line */
	bool short_is_end;    /* a short read is the end of the file */
	unsigned found_calls; /* of the regex */
	unsigned limits;      /* that it met, in all files */
	bool at_end, checked;
	bool ended; /* told to stop, or limits enough */
	/* Facts about the file, for the answer. */
	bool binary, binary_hit, failed, limited;
};

void grep_scan_init(struct grep_scan *scan, const struct grep_pattern *pattern);
void grep_scan_fini(struct grep_scan *scan);

/* Begin the file FD, which stays the caller's. */
void grep_scan_begin(struct grep_scan *scan, int fd, bool short_is_end);
/* The next matching line; false at the end, with `binary`, `failed` and `limited` set. */
bool grep_scan_next(struct grep_scan *scan, struct grep_line *line);
