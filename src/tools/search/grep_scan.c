/* grep_scan: the inner loop of grep; see grep_scan.h. */
#include "tools/search/grep_scan.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* linux/magic.h lacks these two. */
enum { XFS_MAGIC = 0x58465342, ZFS_MAGIC = 0x2fc12fc1 };

enum {
	BINARY_SAMPLE = 8 << 10, /* as text_is_binary looks at */
	/*
	 * Zeros behind the data: PCRE2's JIT (10.42) looks there for the rest of a
	 * character that is cut at the end of the subject.
	 */
	BUFFER_PADDING = 8,
	/* Questions to the regex between two whether to stop, of those that met no limit. */
	STOP_EVERY = 16,
};

bool grep_reads_are_whole(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case ZFS_MAGIC:
	case TMPFS_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
	case SQUASHFS_MAGIC:
		return true;
	default:
		return false;
	}
}

void grep_scan_init(struct grep_scan *scan, const struct grep_pattern *pattern)
{
	*scan = (struct grep_scan){.pattern = pattern, .fd = -1};
	/* Not zeroed: a small search touches little of it. */
	scan->room = GREP_BUFFER_FIRST;
	scan->data = memory_grow(NULL, scan->room + BUFFER_PADDING, 1);
	if (pattern->regex)
		scan->scratch = regex_scratch_new(pattern->regex);
}

void grep_scan_fini(struct grep_scan *scan)
{
	free(scan->data);
	regex_scratch_free(scan->scratch);
	*scan = (struct grep_scan){.fd = -1};
}

void grep_scan_begin(struct grep_scan *scan, int fd, bool short_is_end)
{
	scan->fd = fd;
	scan->short_is_end = short_is_end;
	scan->base = 0;
	scan->size = scan->limit = scan->at = scan->slow_until = 0;
	memset(scan->next, 0, sizeof(scan->next));
	scan->counted_at = scan->last_hit = UINT64_MAX;
	scan->at_end = scan->checked = scan->ended = false;
	scan->binary = scan->binary_hit = scan->failed = scan->limited = false;
}

/*
 * From where the data is still needed: lines of context, or the end of a line that was
 * cut.
 */
static size_t scan_keep_from(const struct grep_scan *scan)
{
	size_t from = scan->limit;
	size_t lowest = from > GREP_KEEP ? from - GREP_KEEP : 0;

	if (from > 0 && scan->data[from - 1] != '\n')
		return from > GREP_OVERLAP
			       ? text_character_border((struct str){scan->data, scan->size},
						       from - GREP_OVERLAP)
			       : 0;
	for (size_t lines = 0; lines < scan->keep_lines && from > lowest; lines++) {
		const char *end = memrchr(scan->data + lowest, '\n', from - 1 - lowest);

		from = end ? (size_t)(end - scan->data) + 1 : lowest;
	}
	/* A long line behind them may leave no room to read on: then they are not kept. */
	return scan->size - from < scan->room ? from : scan->limit;
}

/* Forget what was searched, to make room. */
static void scan_shift(struct grep_scan *scan)
{
	size_t from = scan_keep_from(scan);
	bool cut = scan->limit > 0 && scan->data[scan->limit - 1] != '\n';

	if (cut) {
		/*
		 * The piece that ends here began at the start of the data or behind a
		 * "\n".
		 */
		const char *before = memrchr(scan->data, '\n', scan->limit);
		size_t piece = before ? (size_t)(before - scan->data) + 1 : 0;
		bool counted = scan->last_hit == scan->base + piece ||
			       scan->counted_at == scan->base + piece;

		scan->counted_at = counted ? scan->base + from : UINT64_MAX;
		scan->at = from;
	} else {
		scan->at = scan->limit;
	}
	memmove(scan->data, scan->data + from, scan->size - from);
	scan->base += from;
	scan->size -= from;
	scan->limit -= from;
	scan->at -= from;
	scan->slow_until = 0;
	memset(scan->next, 0, sizeof(scan->next));
}

static bool scan_is_binary(struct grep_scan *scan)
{
	if (!scan->checked && scan->base == 0)
		scan->binary = text_is_binary((struct str){scan->data, scan->size});
	scan->checked = true;
	return scan->binary;
}

/* Read until a whole line, or the end, or a full buffer. */
static bool scan_read(struct grep_scan *scan)
{
	while (!scan->at_end) {
		size_t room = scan->room - scan->size;
		ssize_t n = fd_bare_read(scan->fd, scan->data + scan->size, room);
		const char *end;

		if (n < 0 && errno == EINTR)
			continue;
		scan->failed = n < 0;
		scan->at_end = n <= 0 || (scan->short_is_end && (size_t)n < room);
		scan->size += n > 0 ? (size_t)n : 0;
		scan->limit = scan->size;
		memset(scan->data + scan->size, 0, BUFFER_PADDING);
		if (scan->at_end)
			break;
		if (scan->size == scan->room && scan->room < GREP_BUFFER) {
			scan->room = GREP_BUFFER;
			scan->data =
				memory_grow(scan->data, scan->room + BUFFER_PADDING, 1);
			continue;
		}
		end = memrchr(scan->data + scan->at, '\n', scan->size - scan->at);
		if (end)
			scan->limit = (size_t)(end - scan->data) + 1;
		if (end || scan->size == scan->room)
			break;
	}
	return scan->limit > scan->at;
}

bool grep_scan_more(struct grep_scan *scan)
{
	if (scan->at_end || scan->binary || scan->ended ||
	    (scan->stopped && scan->stopped(scan->stop_owner)))
		return false;
	if (scan->size > 0) {
		/* A file of several pieces: look what it is before reading on. */
		if (scan_is_binary(scan))
			return false;
		if (scan->leaving)
			scan->leaving(scan->leave_owner, scan);
		scan_shift(scan);
	}
	if (!scan_read(scan))
		return false;
	/* Without a needle the regex would meet every byte of it. */
	if (scan->base == 0 && !scan->checked && scan->pattern->needle_count == 0 &&
	    memchr(scan->data, '\0', scan->size < BINARY_SAMPLE ? scan->size : BINARY_SAMPLE))
		scan->binary = true;
	return !scan->binary;
}

static void line_around(const struct grep_scan *scan, size_t from, size_t hit,
			struct grep_line *line)
{
	const char *before = memrchr(scan->data + from, '\n', hit - from);
	const char *after = memchr(scan->data + hit, '\n', scan->limit - hit);

	line->start = before ? (size_t)(before - scan->data) + 1 : from;
	line->end = after ? (size_t)(after - scan->data) : scan->limit;
}

static enum regex_answer scan_find(struct grep_scan *scan, struct str text,
				   struct regex_span *span)
{
	const enum regex_answer answer =
		regex_find(scan->pattern->regex, scan->scratch, text, 0, span);

	if ((++scan->found_calls % STOP_EVERY == 0 || answer == REGEX_LIMIT) &&
	    scan->stopped && scan->stopped(scan->stop_owner))
		scan->ended = true;
	return answer;
}

bool grep_scan_gave_up(const struct grep_scan *scan)
{
	return scan->limits >= GREP_LIMITED_MAX;
}

static void note_limit(struct grep_scan *scan)
{
	scan->limited = true;
	scan->limits++;
	scan->ended = scan->ended || grep_scan_gave_up(scan);
}

/* Does the regex match LINE? */
static bool scan_line_matches(struct grep_scan *scan, struct grep_line *line)
{
	struct str text = {scan->data + line->start, line->end - line->start};
	struct regex_span span;
	enum regex_answer answer;

	if (scan->pattern->drop_cr && str_ends(text, STR("\r")))
		text.size--;
	answer = scan_find(scan, text, &span);
	if (answer == REGEX_LIMIT)
		note_limit(scan);
	if (answer != REGEX_FOUND)
		return false;
	line->match_start = line->start + span.start;
	line->match_end = line->start + span.end;
	return true;
}

/* The needle that stands first at or behind `at`, and where; (size_t)-1: none does. */
static size_t scan_next_needle(struct grep_scan *scan, const struct grep_needle **first)
{
	const struct grep_pattern *pattern = scan->pattern;
	struct str text = {scan->data, scan->limit};
	size_t nearest = (size_t)-1;

	for (size_t i = 0; i < pattern->needle_count; i++) {
		size_t *next = &scan->next[i];

		if (*next <= scan->at)
			*next = grep_needle_find(&pattern->needles[i], text, scan->at);
		if (*next < nearest) {
			nearest = *next;
			*first = &pattern->needles[i];
		}
	}
	return nearest;
}

/* Lines that hold a needle, until the regex agrees with one. */
static bool scan_by_needle(struct grep_scan *scan, struct grep_line *line)
{
	const struct grep_needle *needle = NULL;

	while (scan->at < scan->limit && !scan->ended) {
		size_t hit = scan_next_needle(scan, &needle);

		if (hit == (size_t)-1)
			break;
		line_around(scan, scan->at, hit, line);
		line->match_start = hit;
		line->match_end = hit + needle->size;
		if (!scan->pattern->regex || scan_line_matches(scan, line))
			return true;
		scan->at = line->end + 1;
	}
	scan->at = scan->limit;
	return false;
}

static bool scan_by_line(struct grep_scan *scan, size_t until, struct grep_line *line)
{
	while (scan->at < until && !scan->ended) {
		line_around(scan, scan->at, scan->at, line);
		if (scan_line_matches(scan, line))
			return true;
		scan->at = line->end + 1;
	}
	return false;
}

/*
 * The whole block at once: nothing in the pattern matches "\n", so a match lies in one
 * line.
 */
static bool scan_by_block(struct grep_scan *scan, struct grep_line *line)
{
	struct str rest;
	struct regex_span span;
	enum regex_answer answer;

	if (scan->at < scan->slow_until && scan_by_line(scan, scan->slow_until, line))
		return true;
	if (scan->at >= scan->limit)
		return false;
	rest = (struct str){scan->data + scan->at, scan->limit - scan->at};
	answer = scan_find(scan, rest, &span);
	if (answer == REGEX_LIMIT) {
		/*
		 * The limit was meant for one line: find out which ones really meet it.
		 */
		scan->slow_until = scan->limit;
		return scan_by_line(scan, scan->slow_until, line);
	}
	if (answer != REGEX_FOUND ||
	    (span.start == rest.size && rest.data[rest.size - 1] == '\n')) {
		scan->at = scan->limit;
		return false;
	}
	line_around(scan, scan->at, scan->at + span.start, line);
	line->match_start = scan->at + span.start;
	line->match_end = scan->at + span.end;
	return true;
}

static bool scan_block(struct grep_scan *scan, struct grep_line *line)
{
	if (scan->pattern->needle_count > 0)
		return scan_by_needle(scan, line);
	if (scan->pattern->by_line)
		return scan_by_line(scan, scan->limit, line);
	return scan_by_block(scan, line);
}

bool grep_scan_next(struct grep_scan *scan, struct grep_line *line)
{
	do {
		while (scan->at < scan->limit && !scan->ended && scan_block(scan, line)) {
			scan->at = line->end + 1;
			scan->binary_hit = scan_is_binary(scan);
			if (scan->binary_hit)
				return false;
			scan->last_hit = scan->base + line->start;
			if (scan->last_hit != scan->counted_at)
				return true;
		}
		scan->at = scan->limit;
	} while (grep_scan_more(scan));
	return false;
}
