/*
 * grep: searches file contents by a regular expression, line by line. Totals are stated,
 * results are in one order (newest file, path, line), and the answer to a search that was
 * stopped never says "none".
 */

#include "tools/search/grep.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/pattern.h"
#include "base/text/regex.h"
#include "base/text/text.h"
#include "base/value.h"
#include "files/files.h"
#include "tool/call.h"
#include "tools/search/glob.h"
#include "tools/search/grep_pattern.h"
#include "tools/search/walk.h"
#include "tools/shown.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum grep_mode { GREP_AUTO, GREP_LINES, GREP_FILES, GREP_COUNT };

/* How many files auto mode names, with their counts, behind the lines that it shows. */
enum { GREP_AUTO_FILES = 50 };

/*
 * The findings of one thread. The counters are its own, so that threads do not wait for
 * each other.
 */
struct grep_worker {
	struct grep_scan scan;
	struct ranking best;
	bool begun;
	uint64_t folder; /* the folder whose file system is known */
	bool short_is_end;
	uint64_t lines, files; /* matching */
	uint64_t searched;     /* files */
	uint64_t unfitting;    /* that fit neither glob nor file_type */
	uint64_t binary;       /* binary files with a match, which are not shown */
	uint64_t unreadable;   /* files */
	uint64_t limited;      /* files in which the regex met its limits */
	char apart[WALK_APART];
};

struct grep {
	struct call *call;
	struct grep_pattern pattern;
	enum grep_mode mode;
	struct pattern_set *glob; /* NULL: none */
	bool glob_excludes;
	const struct file_type *type; /* NULL: any */
	uint64_t offset, limit;
	size_t context;

	struct walk_start start; /* for a single file: no folder, only its name */
	int file_fd;             /* that file, -1 for a folder */
	size_t keep;             /* files remembered per thread */
	bool first_only;         /* a file with one match is enough */
	struct grep_worker workers[WALK_THREADS_MAX];
	struct walk_summary summary;
};

enum {
	/*
	 * The most bytes of a line that are shown, so that a minified file does not fill
	 * the answer. This is less than in read_file, because there may be many such
	 * lines.
	 */
	GREP_LINE_MAX = 500,
};

struct grep_show {
	struct grep_scan *scan; /* was begun; its `leaving` is set here */
	size_t context;
	uint64_t skip;   /* number of matching lines that are not shown at the start */
	uint64_t want;   /* the most lines that are shown after these */
	size_t text_max; /* when OUT has this many bytes, no further line is shown */
	struct buf *out;
	struct value *rows; /* gets one object per line shown */
	const char *name;   /* of the file, for the rows */

	uint64_t shown;
	uint64_t next;        /* offset in the file behind the last line shown */
	uint64_t line_at;     /* a line begins here … */
	uint64_t line_number; /* … with this number */
	size_t after_left;    /* lines of context still due */
	/* number of the first line that is shown in part; 0: there is none */
	uint64_t first_cut;
	uint64_t gap; /* where the bytes are that are left out of this line */
};

/* Searches one file, block by block. */

/* linux/magic.h lacks these two. */
enum { XFS_MAGIC = 0x58465342, ZFS_MAGIC = 0x2fc12fc1 };

enum {
	BINARY_SAMPLE = 8 << 10, /* as many as text_is_binary looks at */
	/*
	 * Zeros behind the data. PCRE2's JIT (10.42) looks there for the rest of a
	 * character that is cut at the end of the subject.
	 */
	BUFFER_PADDING = 8,
	/*
	 * How many matches of the regex, of those that met no limit, lie between two
	 * looks whether to stop.
	 */
	STOP_EVERY = 16,
};

/*
 * Does the file system of FD give complete reads, so that a short read means the end of
 * the file?
 */
static bool grep_reads_are_whole(int fd)
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
	/* The buffer is not zeroed, because a small search uses only a little of it. */
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
 * The start of the data that is still needed: lines of context, or the end of a line that
 * was cut.
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
	/*
	 * When a long line leaves no room to read further, the lines of context are not
	 * kept.
	 */
	return scan->size - from < scan->room ? from : scan->limit;
}

/* Drop the data that was searched, to make room. */
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

/*
 * openat, read and close without cancellation points: a search makes hundreds of thousands
 * of these calls in several threads. No thread here is ever cancelled, and in the C library
 * a cancellation point takes longer than entering the kernel.
 */

static int bare_open(int folder_fd, const char *name, int flags)
{
	return (int)syscall(SYS_openat, folder_fd, name, flags | O_CLOEXEC);
}

static ssize_t bare_read(int fd, void *data, size_t size)
{
	return syscall(SYS_read, fd, data, size);
}

static void bare_close(int fd)
{
	(void)syscall(SYS_close, fd);
}

/* Read until a whole line, or the end, or a full buffer. */
static bool scan_read(struct grep_scan *scan)
{
	while (!scan->at_end) {
		size_t room = scan->room - scan->size;
		ssize_t n = bare_read(scan->fd, scan->data + scan->size, room);
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

/* Go on to the next piece without searching the rest of this one. False at the end. */
static bool grep_scan_more(struct grep_scan *scan)
{
	if (scan->at_end || scan->binary || scan->ended ||
	    (scan->stopped && scan->stopped(scan->stop_owner)))
		return false;
	if (scan->size > 0) {
		/* In a file of several pieces, check its kind before reading on. */
		if (scan_is_binary(scan))
			return false;
		if (scan->leaving)
			scan->leaving(scan->leave_owner, scan);
		scan_shift(scan);
	}
	if (!scan_read(scan))
		return false;
	/* Without a needle the regex would look at every byte of a binary file. */
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

/* Did the regex meet its limits so often that searching the rest would be a waste? */
static bool grep_scan_gave_up(const struct grep_scan *scan)
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

/* Find the first needle at or behind `at`, and its place; (size_t)-1: there is none. */
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

/* Try the lines with a needle until the regex matches one of them. */
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
 * Search the whole block with one call. Nothing in the pattern matches "\n", so a match
 * lies in one line.
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
		 * The limit is meant for one line, so find the lines that really meet it.
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

/*
 * Searches every file once, by all threads, for the number of matching lines and the time
 * of the file's last change.
 */

static bool grep_fits(const struct grep *grep, const struct walk_entry *entry)
{
	if (grep->type && !file_type_fits(grep->type, str_of(entry->name)))
		return false;
	return !grep->glob ||
	       pattern_set_match(grep->glob, entry->path) != grep->glob_excludes;
}

static struct grep_worker *grep_worker_of(struct grep *grep, unsigned number)
{
	struct grep_worker *worker = &grep->workers[number];

	if (!worker->begun) {
		grep_scan_init(&worker->scan, &grep->pattern);
		ranking_init(&worker->best, grep->keep, found_newer);
		worker->begun = true;
	}
	return worker;
}

/*
 * Count the matching lines of the file FD. When there are any, the file may join the best
 * ones.
 */
static void grep_count(struct grep *grep, struct grep_worker *worker, int fd, struct str path)
{
	struct grep_scan *scan = &worker->scan;
	struct grep_line line;
	struct found found = {.kind = WALK_FILE};
	struct stat st;

	grep_scan_begin(scan, fd, worker->short_is_end);
	while (grep_scan_next(scan, &line)) {
		found.count++;
		if (grep->first_only)
			break;
	}
	worker->searched++;
	worker->unreadable += scan->failed;
	worker->limited += scan->limited;
	worker->binary += scan->binary_hit;
	if (found.count == 0 || scan->binary || fstat(fd, &st) < 0)
		return;
	worker->files++;
	worker->lines += found.count;
	found.time_ns = clock_ns(&st.st_mtim);
	found.size = (uint64_t)st.st_size;
	found.path = memory_copy_str(path);
	ranking_add(&worker->best, found);
}

static bool stopped_by_walk(void *walker)
{
	return walker_stopped(walker);
}

static bool stopped_by_call(void *call)
{
	return call_stopped(call);
}

static void grep_visit(void *owner, struct walker *walker, const struct walk_entry *entry)
{
	struct grep *grep = owner;
	struct grep_worker *worker;
	int fd;

	if (entry->kind != WALK_FILE)
		return;
	worker = grep_worker_of(grep, walker_number(walker));
	if (!grep_fits(grep, entry)) {
		worker->unfitting++;
		return;
	}
	/*
	 * Links are not followed. When another kind of file has taken the file's place,
	 * the open does not block.
	 */
	fd = bare_open(entry->folder_fd, entry->name,
		       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		worker->unreadable += errno != ENOENT && errno != ELOOP && errno != ENOTDIR;
		return;
	}
	if (worker->folder != entry->folder) {
		worker->folder = entry->folder;
		worker->short_is_end = grep_reads_are_whole(entry->folder_fd);
	}
	worker->scan.stopped = stopped_by_walk;
	worker->scan.stop_owner = walker;
	grep_count(grep, worker, fd, entry->path);
	bare_close(fd);
	if (grep_scan_gave_up(&worker->scan))
		walker_give_up(walker);
}

/* Add up the findings of all threads in workers[0]. */
static void grep_gather(struct grep *grep)
{
	struct grep_worker *all = grep_worker_of(grep, 0);

	for (size_t i = 1; i < WALK_THREADS_MAX; i++) {
		struct grep_worker *worker = &grep->workers[i];

		if (!worker->begun)
			continue;
		ranking_take_all(&all->best, &worker->best);
		all->lines += worker->lines;
		all->files += worker->files;
		all->searched += worker->searched;
		all->unfitting += worker->unfitting;
		all->binary += worker->binary;
		all->unreadable += worker->unreadable;
		all->limited += worker->limited;
		grep_scan_fini(&worker->scan);
		*worker = (struct grep_worker){0};
	}
	ranking_sort(&all->best);
	/* the found lines are shown, however often the limits were met before */
	all->scan.limits = 0;
	all->scan.stopped = stopped_by_call;
	all->scan.stop_owner = grep->call;
}

/* Search. Afterwards workers[0] has the sums and the best files, sorted. */
static void grep_run(struct grep *grep)
{
	struct walk_options options = {
		.call = grep->call,
		.visit = grep_visit,
		.owner = grep,
	};
	struct grep_worker *worker;

	if (grep->file_fd < 0) {
		walk_run(&grep->start, &options, &grep->summary);
	} else {
		worker = grep_worker_of(grep, 0);
		worker->scan.stopped = stopped_by_call;
		worker->scan.stop_owner = grep->call;
		grep_count(grep, worker, grep->file_fd, STR(""));
		if (call_stopped(grep->call))
			grep->summary.end = WALK_STOPPED;
		else if (grep_scan_gave_up(&worker->scan))
			grep->summary.end = WALK_GIVEN_UP;
	}
	grep_gather(grep);
}

static void grep_forget(struct grep *grep);

/*
 * Search only the ignored files, for SEARCH_IGNORED_MS. SUMMARY becomes that of this
 * walk.
 */
static void grep_run_ignored(struct grep *grep, struct walk_summary *summary)
{
	struct walk_options options = {
		.call = grep->call,
		.ignored_only = true,
		.until_ms = clock_now_ms() + SEARCH_IGNORED_MS,
		.visit = grep_visit,
		.owner = grep,
	};

	grep_forget(grep);
	grep->keep = SEARCH_IGNORED_SHOWN;
	grep->first_only = true;
	walk_run(&grep->start, &options, summary);
	grep_gather(grep);
}

static void grep_forget(struct grep *grep)
{
	for (size_t i = 0; i < WALK_THREADS_MAX; i++) {
		if (!grep->workers[i].begun)
			continue;
		grep_scan_fini(&grep->workers[i].scan);
		ranking_fini(&grep->workers[i].best);
		grep->workers[i] = (struct grep_worker){0};
	}
}

/*
 * The matching lines of one file as a model reads them: number, text, context, long lines
 * cut around the match. All offsets that are kept are offsets in the file, because the
 * data moves in the buffer.
 */

/*
 * The number of the line that begins at the offset AT, which is in the data. AT may only
 * grow from call to call.
 */
static uint64_t show_number(struct grep_show *show, uint64_t at)
{
	const struct grep_scan *scan = show->scan;

	if (show->line_at < at) {
		show->line_number += text_count_line_ends(
			(struct str){scan->data + (show->line_at - scan->base),
				     (size_t)(at - show->line_at)});
		show->line_at = at;
	}
	return show->line_number;
}

enum {
	SHOW_PIECE = 16 << 10, /* one read of a line that the data holds in part */
	/* Held around each shown place, so that no character is cut. */
	SHOW_SLACK = 4,
	SHOW_HELD = 2 * (GREP_LINE_MAX + SHOW_SLACK),
};

static bool show_stopped(const struct grep_scan *scan)
{
	return scan->stopped && scan->stopped(scan->stop_owner);
}

/*
 * The offset in the file where the line with the byte START of the data begins. Of a line
 * longer than the scan's buffer the data has only a piece.
 */
static uint64_t find_start(const struct grep_scan *scan, size_t start)
{
	const char *feed = start > 0 ? memrchr(scan->data, '\n', start) : NULL;
	uint64_t at = scan->base;
	char piece[SHOW_PIECE];

	if (feed)
		return scan->base + (size_t)(feed - scan->data) + 1;
	while (at > 0 && !show_stopped(scan)) {
		size_t wanted = at < sizeof(piece) ? (size_t)at : sizeof(piece);
		ssize_t got = pread(scan->fd, piece, wanted, (off_t)(at - wanted));

		if (got != (ssize_t)wanted)
			break;
		feed = memrchr(piece, '\n', wanted);
		if (feed)
			return at - wanted + (size_t)(feed - piece) + 1;
		at -= wanted;
	}
	return at;
}

/* The end of this line: its line feed, or the end of the file. */
static uint64_t find_end(const struct grep_scan *scan, size_t start)
{
	const char *feed = memchr(scan->data + start, '\n', scan->limit - start);
	uint64_t at = scan->base + scan->limit;
	char piece[SHOW_PIECE];
	ssize_t got = 1;

	if (feed)
		return scan->base + (size_t)(feed - scan->data);
	while (got > 0 && !show_stopped(scan)) {
		got = pread(scan->fd, piece, sizeof(piece), (off_t)at);
		feed = got > 0 ? memchr(piece, '\n', (size_t)got) : NULL;
		if (feed)
			return at + (size_t)(feed - piece);
		at += got > 0 ? (size_t)got : 0;
	}
	return at;
}

/* Read a part of the line that ends at TO: up to SHOW_HELD bytes from AT on. */
static struct str read_part(const struct grep_scan *scan, uint64_t at, uint64_t to,
			    char room[SHOW_HELD])
{
	size_t wanted = to - at < SHOW_HELD ? (size_t)(to - at) : SHOW_HELD;
	ssize_t got;

	if (at >= scan->base && at + wanted <= scan->base + scan->limit)
		return (struct str){scan->data + (at - scan->base), wanted};
	got = pread(scan->fd, room, wanted, (off_t)at);
	return (struct str){room, got > 0 ? (size_t)got : 0};
}

/*
 * Add the line from FROM to TO of the file. Of a long line its two ends are shown, and
 * the MATCH in it if there is one. Returns what was left out.
 */
static struct text_line_cut add_line(const struct grep_scan *scan, uint64_t from,
				     uint64_t to, const struct grep_line *match,
				     struct buf *out)
{
	char rooms[TEXT_LINE_PARTS][SHOW_HELD];
	struct text_line line = {.size = to - from};
	uint64_t at[TEXT_LINE_PARTS] = {from, from, from};

	if (match) {
		line.place = scan->base + match->match_start - from;
		line.place_end = scan->base + match->match_end - from;
	}
	if (line.place > SHOW_HELD / 2)
		at[1] = from + line.place - SHOW_HELD / 2;
	if (line.size > SHOW_HELD)
		at[2] = to - SHOW_HELD;
	for (size_t i = 0; i < TEXT_LINE_PARTS; i++) {
		line.held[i].at = at[i] - from;
		line.held[i].bytes = read_part(scan, at[i], to, rooms[i]);
	}
	if (line.size > 0 && str_ends(line.held[2].bytes, STR("\r"))) {
		for (size_t i = 0; i < TEXT_LINE_PARTS; i++)
			line.held[i].bytes.size -=
				line.held[i].at + line.held[i].bytes.size == line.size;
		line.size--;
	}
	return text_add_line(&line, GREP_LINE_MAX, shown_add, out);
}

/* One line at START in the data: "12: text" when it matches, "12- text" for context. */
static void show_line(struct grep_show *show, size_t start, uint64_t number,
		      const struct grep_line *match)
{
	struct grep_scan *scan = show->scan;
	uint64_t begin = find_start(scan, start);
	uint64_t end = find_end(scan, start);
	struct text_line_cut cut;
	size_t from;

	(void)buf_addf(show->out, "%" PRIu64 "%c ", number, match ? ':' : '-');
	from = show->out->size;
	cut = add_line(scan, begin, end, match, show->out);
	if (cut.left_out > 0 && show->first_cut == 0) {
		show->first_cut = number;
		show->gap = cut.gap;
	}
	if (match) {
		struct value *row = value_new_object();

		value_set_text(row, "path", show->name);
		value_set_integer(row, "line", (int64_t)number);
		value_set_str(row, "text",
			      str_part(buf_str(show->out), from, show->out->size));
		value_append(show->rows, row);
	}
	(void)buf_addc(show->out, '\n');
	show->next = end + 1;
}

/* Show the lines of context after the last match, as far as UNTIL in the data. */
static void show_after(struct grep_show *show, size_t until)
{
	struct grep_scan *scan = show->scan;

	while (show->after_left > 0 && show->next < scan->base + until) {
		show_line(show, (size_t)(show->next - scan->base),
			  show_number(show, show->next), NULL);
		show->after_left--;
	}
}

static void show_leaving(void *owner, struct grep_scan *scan)
{
	struct grep_show *show = owner;

	show_after(show, scan->limit);
	(void)show_number(show, scan->base + scan->limit);
}

static void show_match(struct grep_show *show, const struct grep_line *line)
{
	struct grep_scan *scan = show->scan;
	uint64_t number = show_number(show, scan->base + line->start);
	size_t lowest = show->next > scan->base ? (size_t)(show->next - scan->base) : 0;
	size_t from = line->start;
	size_t before = 0;

	while (before < show->context && from > lowest) {
		const char *end = memrchr(scan->data + lowest, '\n', from - 1 - lowest);

		from = end ? (size_t)(end - scan->data) + 1 : lowest;
		before++;
	}
	if (show->context > 0 && show->shown > 0 && scan->base + from > show->next)
		(void)buf_adds(show->out, "--\n");
	while (before > 0) {
		show_line(show, from, number - before, NULL);
		from = (size_t)(show->next - scan->base);
		before--;
	}
	show_line(show, line->start, number, line);
	show->after_left = show->context;
	show->shown++;
}

/* Show the file. Afterwards SHOWN has the number of lines. */
static void grep_show_file(struct grep_show *show)
{
	struct grep_scan *scan = show->scan;
	struct grep_line line;

	show->shown = show->next = show->line_at = 0;
	show->line_number = 1;
	show->after_left = 0;
	scan->keep_lines = show->context;
	scan->leaving = show_leaving;
	scan->leave_owner = show;
	while (show->shown < show->want && show->out->size < show->text_max &&
	       grep_scan_next(scan, &line)) {
		show_after(show, line.start);
		if (show->skip > 0)
			show->skip--;
		else
			show_match(show, &line);
	}
	do
		show_after(show, scan->limit);
	while (show->after_left > 0 && grep_scan_more(scan));
}

/*
 * The results as a model reads them: the totals first, then lines, files or counts, the
 * newest file first. Only the files that are shown are opened once more for their lines;
 * all others were only counted.
 */

/* The longest name, with every byte escaped. */
enum { NAME_SHOWN_MAX = 4 * PATH_MAX };

/* An answer while it is made. */
struct answer {
	struct grep *grep;
	struct buf body;
	struct value *rows;
	uint64_t shown;   /* lines, or files in the modes that show files */
	size_t next_file; /* index in the ranking behind the last file that was shown */
	uint64_t gone;    /* files that were changed or removed meanwhile */
	struct buf cut;   /* the commands that show more of the first line that was cut */
};

static void add_plural(struct buf *out, uint64_t count, const char *one, const char *many)
{
	(void)buf_addf(out, "%" PRIu64 " %s", count, count == 1 ? one : many);
}

static int answer_open(const struct grep *grep, const char *path)
{
	if (grep->file_fd < 0)
		return fd_open_beneath(grep->start.fd, path, O_RDONLY);
	if (lseek(grep->file_fd, 0, SEEK_SET) < 0)
		return -1;
	return dup(grep->file_fd);
}

/* Show the matching lines of the file FOUND from number SKIP on. */
static void answer_lines_of(struct answer *answer, const struct found *found, uint64_t skip)
{
	struct grep *grep = answer->grep;
	struct grep_worker *worker = &grep->workers[0];
	auto_close int fd = answer_open(grep, found->path);
	size_t before = answer->body.size;
	struct grep_show show = {
		.scan = &worker->scan,
		.context = grep->context,
		.skip = skip,
		.want = grep->limit - answer->shown,
		.text_max = SEARCH_TEXT_MAX,
		.out = &answer->body,
		.rows = answer->rows,
	};
	struct buf name;

	if (fd < 0) {
		answer->gone++;
		return;
	}
	buf_init(&name, NAME_SHOWN_MAX);
	walk_start_name(&grep->start, str_of(found->path), &name);
	show.name = name.data;
	(void)buf_addf(&answer->body, "%s%s\n", before > 0 ? "\n" : "", name.data);
	/* Even when its name fills the answer, a file gets one line. */
	if (answer->body.size >= show.text_max)
		show.text_max = answer->body.size + 1;
	grep_scan_begin(&worker->scan, fd, worker->short_is_end);
	/* The file was text when its lines were counted. */
	worker->scan.checked = true;
	grep_show_file(&show);
	if (show.shown == 0) {
		buf_truncate(&answer->body, before);
		answer->gone++;
	}
	answer->shown += show.shown;
	if (show.first_cut > 0 && answer->cut.size == 0) {
		(void)buf_addf(&answer->cut,
			       "Lines over %d bytes are cut, as line %" PRIu64 " of ",
			       GREP_LINE_MAX, show.first_cut);
		(void)buf_adds(&answer->cut, name.data);
		(void)buf_adds(&answer->cut, ": ");
		shown_add_line_calls(name.data, show.first_cut, show.gap, true,
				     &answer->cut);
		(void)buf_adds(&answer->cut, ".\n");
	}
	buf_fini(&name);
}

static void answer_lines(struct answer *answer)
{
	const struct grep *grep = answer->grep;
	const struct ranking *best = &grep->workers[0].best;
	uint64_t before = 0;

	for (size_t i = 0; i < best->count; i++) {
		const struct found *found = &best->items[i];

		if (answer->shown == grep->limit || answer->body.size >= SEARCH_TEXT_MAX)
			break;
		if (before + found->count > grep->offset)
			answer_lines_of(answer, found,
					grep->offset > before ? grep->offset - before : 0);
		before += found->count;
		answer->next_file = i + 1;
	}
}

/*
 * Add files from index FROM on, at most COUNT, with or without their counts. Returns how
 * many.
 */
static uint64_t answer_files(struct answer *answer, size_t from, uint64_t count, bool counts)
{
	const struct ranking *best = &answer->grep->workers[0].best;
	size_t i;

	for (i = from; i < best->count && i - from < count; i++) {
		const struct found *found = &best->items[i];
		struct value *row = value_new_object();
		size_t at = answer->body.size;

		if (at >= SEARCH_TEXT_MAX) {
			value_free(row);
			break;
		}
		walk_start_name(&answer->grep->start, str_of(found->path), &answer->body);
		value_set_str(row, "path",
			      str_part(buf_str(&answer->body), at, answer->body.size));
		if (counts) {
			(void)buf_addf(&answer->body, ": %" PRIu64, found->count);
			value_set_integer(row, "count", (int64_t)found->count);
		}
		(void)buf_addc(&answer->body, '\n');
		value_append(answer->rows, row);
	}
	return i - from;
}

/* Behind the lines of auto mode: the files with further matches. */
static void answer_other_files(struct answer *answer)
{
	const struct grep_worker *all = &answer->grep->workers[0];
	uint64_t shown;

	if (all->files <= answer->next_file)
		return;
	(void)buf_adds(&answer->body, "\nFurther files, with their matching lines:\n");
	shown = answer_files(answer, answer->next_file, GREP_AUTO_FILES, true);
	if (all->files - answer->next_file > shown)
		(void)buf_addf(&answer->body, "and %" PRIu64 " more files\n",
			       all->files - answer->next_file - shown);
}

/* Nothing was found: append what was searched. */
static void answer_none(const struct grep *grep, struct buf *out)
{
	const struct grep_worker *all = &grep->workers[0];
	struct str pattern = call_str(grep->call, "pattern");
	size_t bar = str_find(pattern, STR("\\|"), 0);

	if (all->searched == 0 && all->unfitting > 0) {
		(void)buf_adds(out, "No file fits ");
		if (grep->glob)
			shown_add(str_of(call_text(grep->call, "glob")), out);
		(void)buf_adds(out, grep->glob && grep->type ? " and file_type " : "");
		if (grep->type)
			(void)buf_adds(out, call_text(grep->call, "file_type"));
		glob_search_add_where(&grep->start, out);
		(void)buf_adds(out, ": nothing was searched; ");
		add_plural(out, all->unfitting, "file does", "files do");
		(void)buf_adds(out, " not fit.\n");
		return;
	}
	if (grep->summary.end == WALK_COMPLETE)
		(void)buf_adds(out, "No match in ");
	else
		(void)buf_adds(out, "No match so far in ");
	add_plural(out, all->searched, "file", "files");
	if (grep->file_fd < 0) {
		(void)buf_adds(out, " searched");
		glob_search_add_where(&grep->start, out);
	} else {
		(void)buf_adds(out, ": ");
		walk_start_name(&grep->start, STR(""), out);
	}
	if (all->unfitting > 0)
		(void)buf_addf(out, " (%" PRIu64 " more do not fit glob or file_type)",
			       all->unfitting);
	(void)buf_adds(out, ".\n");
	if (bar != (size_t)-1 && !call_flag(grep->call, "literal"))
		(void)buf_adds(out,
			       "Note: \\| finds a bar; alternatives are written a|b.\n");
}

/* The totals, and which part of the matches follows. */
static void answer_totals(const struct answer *answer, struct buf *out)
{
	const struct grep *grep = answer->grep;
	const struct grep_worker *all = &grep->workers[0];
	bool files = grep->mode == GREP_FILES || grep->mode == GREP_COUNT;
	uint64_t total = files ? all->files : all->lines;

	if (grep->mode == GREP_FILES) {
		add_plural(out, all->files, "file has a match", "files have a match");
	} else {
		add_plural(out, all->lines, "matching line", "matching lines");
		(void)buf_adds(out, " in ");
		add_plural(out, all->files, "file", "files");
	}
	(void)buf_adds(out, ", newest file first");
	if (answer->shown == 0)
		(void)buf_addf(out, "; none from offset %" PRIu64 " on", grep->offset);
	else if (answer->shown < total)
		(void)buf_addf(out, "; %s %" PRIu64 " to %" PRIu64 " follow",
			       files ? "files" : "lines", grep->offset + 1,
			       grep->offset + answer->shown);
	if (answer->shown > 0 && grep->offset + answer->shown < total)
		(void)buf_addf(out, ", the next with offset=%" PRIu64,
			       grep->offset + answer->shown);
	(void)buf_adds(out, ".\n");
}

static void answer_gaps(const struct answer *answer, struct buf *out)
{
	const struct grep *grep = answer->grep;
	const struct grep_worker *all = &grep->workers[0];

	glob_search_add_ignored(&grep->start, out);
	glob_search_add_gaps(&grep->start, &grep->summary, out);
	if (all->limited > 0) {
		add_plural(out, all->limited, "file", "files");
		(void)buf_adds(out,
			       " could not be searched whole: the pattern needs too many "
			       "steps on some lines. Simplify it (nested * or +).\n");
	}
	if (grep->summary.end == WALK_GIVEN_UP)
		(void)buf_adds(out,
			       "The search was given up for that: there may be more.\n");
	if (all->unreadable > 0) {
		add_plural(out, all->unreadable, "file", "files");
		(void)buf_adds(out, " could not be read.\n");
	}
	if (all->binary > 0) {
		(void)buf_adds(out, "Binary and not shown: ");
		add_plural(out, all->binary, "file with a match", "files with a match");
		(void)buf_adds(out, ".\n");
	}
	if (answer->gone > 0) {
		add_plural(out, answer->gone, "file", "files");
		(void)buf_adds(out, " changed while being searched.\n");
	}
}

/* Nothing was found outside ignored files: name those of them that have a match. */
static void answer_ignored(struct grep *grep, struct tool_result *result)
{
	const struct grep_worker *all = &grep->workers[0];
	struct walk_summary summary;

	walk_summary_init(&summary);
	grep_run_ignored(grep, &summary);
	value_set_integer(tool_details(result), "ignored_files", (int64_t)all->files);
	if (all->files > 0) {
		(void)buf_adds(&result->text, "Ignored files (.gitignore) have it: ");
		glob_search_add_names(&grep->start, &all->best, all->files, &result->text);
		(void)buf_adds(&result->text,
			       ". Name the file or its folder as path to search it.\n");
	}
	glob_search_add_ignored_gap(&summary, all->files > 0, &result->text);
	walk_summary_fini(&summary);
}

static void answer_details(const struct answer *answer, struct tool_result *result)
{
	const struct grep *grep = answer->grep;
	const struct grep_worker *all = &grep->workers[0];
	struct value *details = tool_details(result);

	glob_search_set_details(result, &grep->summary);
	value_set_integer(details, "matching_lines", (int64_t)all->lines);
	value_set_integer(details, "matching_files", (int64_t)all->files);
	value_set_integer(details, "searched_files", (int64_t)all->searched);
	value_set_integer(details, "unreadable_files", (int64_t)all->unreadable);
	value_set_integer(details, "binary_files", (int64_t)all->binary);
	value_set_integer(details, "limited_files", (int64_t)all->limited);
	value_set_integer(details, "offset", (int64_t)grep->offset);
	value_set_integer(details, "shown", (int64_t)answer->shown);
	value_set(details, "rows", answer->rows);
}

/* Write the answer. */
static void grep_answer(struct grep *grep, struct tool_result *result)
{
	const struct grep_worker *all = &grep->workers[0];
	struct answer answer = {.grep = grep, .rows = value_new_array()};
	bool files = grep->mode == GREP_FILES || grep->mode == GREP_COUNT;
	uint64_t total = files ? all->files : all->lines;

	buf_init(&answer.body, RESULT_TEXT_MAX / 2);
	buf_init(&answer.cut, 4 * NAME_SHOWN_MAX);
	if (files)
		answer.shown = answer_files(&answer, (size_t)grep->offset, grep->limit,
					    grep->mode == GREP_COUNT);
	else
		answer_lines(&answer);
	if (grep->mode == GREP_AUTO && answer.shown > 0)
		answer_other_files(&answer);
	if (all->files > 0)
		answer_totals(&answer, &result->text);
	else
		answer_none(grep, &result->text);
	answer_gaps(&answer, &result->text);
	(void)buf_addstr(&result->text, buf_str(&answer.cut));
	if (answer.body.size > 0)
		(void)buf_addc(&result->text, '\n');
	(void)buf_addstr(&result->text, buf_str(&answer.body));
	buf_fini(&answer.body);
	buf_fini(&answer.cut);
	if (total > grep->offset + answer.shown)
		result->left_out_lines = total - grep->offset - answer.shown;
	answer_details(&answer, result);
	if (all->files == 0 && grep->summary.end == WALK_COMPLETE &&
	    grep->summary.ignored > 0 && grep->file_fd < 0)
		answer_ignored(grep, result);
}

/* The table of kinds of source files. */

static const struct file_type file_types[] = {
	{"c h", "*.c *.h *.h.in *.cats"},
	{"cpp c++ cc cxx hpp",
	 "*.cpp *.cc *.cxx *.c++ *.hpp *.hh *.hxx *.h *.inl *.ipp *.tpp"},
	{"objc", "*.m *.h"},
	{"cs csharp", "*.cs *.csx"},
	{"java", "*.java"},
	{"kotlin kt", "*.kt *.kts"},
	{"scala", "*.scala *.sc *.sbt"},
	{"swift", "*.swift"},
	{"go", "*.go"},
	{"rust rs", "*.rs"},
	{"zig", "*.zig *.zon"},
	{"py python", "*.py *.pyi *.pyw"},
	{"rb ruby", "*.rb *.rake *.gemspec Gemfile Rakefile"},
	{"php", "*.php *.phtml *.php3 *.php4 *.php5 *.php7 *.php8 *.phps"},
	{"perl pl", "*.pl *.pm *.t *.psgi *.PL"},
	{"lua", "*.lua"},
	{"r", "*.R *.r *.Rmd *.rmd"},
	{"julia jl", "*.jl"},
	{"haskell hs", "*.hs *.lhs *.hsc"},
	{"ocaml ml", "*.ml *.mli *.mll *.mly"},
	{"elixir ex", "*.ex *.exs *.heex *.eex"},
	{"erlang erl", "*.erl *.hrl"},
	{"clojure clj", "*.clj *.cljs *.cljc *.edn"},
	{"lisp", "*.el *.lisp *.lsp *.scm *.ss *.cl"},
	{"dart", "*.dart"},
	{"js javascript", "*.js *.mjs *.cjs *.jsx *.vue"},
	{"ts typescript", "*.ts *.tsx *.mts *.cts"},
	{"vue", "*.vue"},
	{"svelte", "*.svelte"},
	{"html htm", "*.html *.htm *.xhtml *.ejs"},
	{"css", "*.css"},
	{"scss sass less", "*.scss *.sass *.less"},
	{"json", "*.json *.jsonc *.json5 *.jsonl *.sarif composer.lock"},
	{"yaml yml", "*.yaml *.yml"},
	{"toml", "*.toml Cargo.lock"},
	{"xml", "*.xml *.xsd *.xsl *.xslt *.svg *.rng *.dtd"},
	{"ini config conf", "*.ini *.cfg *.conf *.config"},
	{"md markdown", "*.md *.markdown *.mdx *.mdown"},
	{"rst", "*.rst"},
	{"txt text", "*.txt"},
	{"tex", "*.tex *.sty *.cls *.bib *.ltx"},
	{"sh shell bash zsh", "*.sh *.bash *.zsh *.ksh *.csh .bashrc .profile .zshrc"},
	{"fish", "*.fish"},
	{"ps powershell", "*.ps1 *.psm1 *.psd1"},
	{"sql", "*.sql *.psql"},
	{"proto protobuf", "*.proto"},
	{"graphql gql", "*.graphql *.graphqls *.gql"},
	{"tf terraform hcl", "*.tf *.tfvars *.hcl"},
	{"docker dockerfile", "Dockerfile Dockerfile.* *.dockerfile Containerfile"},
	{"make makefile mk", "Makefile makefile GNUmakefile *.mk *.mak Makefile.* *.am"},
	{"cmake", "CMakeLists.txt *.cmake"},
	{"meson", "meson.build meson_options.txt meson.options"},
	{"ninja", "*.ninja"},
	{"gradle", "*.gradle *.gradle.kts"},
	{"asm", "*.s *.S *.asm"},
	{"nix", "*.nix"},
	{"vim", "*.vim .vimrc vimrc"},
	{"diff patch", "*.diff *.patch"},
	{"log", "*.log"},
	{"csv tsv", "*.csv *.tsv"},
};

enum { FILE_TYPES = sizeof(file_types) / sizeof(file_types[0]) };

/* The most edits between two names that may be a typing error. */
enum { TYPE_SLIP_MAX = 2 };

static bool next_word(const char **at, struct str *word)
{
	*at += strspn(*at, " ");
	*word = (struct str){*at, strcspn(*at, " ")};
	*at += word->size;
	return word->size > 0;
}

const struct file_type *file_type_find(const char *name)
{
	name += *name == '.';
	for (size_t i = 0; i < FILE_TYPES; i++) {
		const char *at = file_types[i].names;
		struct str word;

		while (next_word(&at, &word)) {
			if (str_is(word, name))
				return &file_types[i];
		}
	}
	return NULL;
}

bool file_type_fits(const struct file_type *type, struct str file_name)
{
	const char *at = type->patterns;
	struct str pattern;

	while (next_word(&at, &pattern)) {
		/* Most patterns are "*.x" and need no matcher. */
		if (pattern.data[0] == '*' &&
				    !memchr(pattern.data + 1, '*', pattern.size - 1)
			    ? str_ends(file_name, str_part(pattern, 1, pattern.size))
			    : pattern_match(pattern, file_name, 0))
			return true;
	}
	return false;
}

/* The type whose name is nearest to NAME, for a refusal; NULL: there is none. */
static const struct file_type *file_type_nearest(const char *name)
{
	const struct file_type *nearest = NULL;
	size_t best = TYPE_SLIP_MAX + 1;

	for (size_t i = 0; i < FILE_TYPES; i++) {
		const char *at = file_types[i].names;
		struct str word;

		while (next_word(&at, &word)) {
			size_t distance = text_distance(str_of(name), word, TYPE_SLIP_MAX);

			/*
			 * A typing error leaves a part of the word: "x" is not meant as
			 * "go".
			 */
			if (distance < best && distance < word.size) {
				best = distance;
				nearest = &file_types[i];
			}
		}
	}
	return nearest;
}

/* Append the usual name of TYPE, or of all types, ", " between. */
static void file_type_add_name(const struct file_type *type, struct buf *out)
{
	const char *at = type->names;
	struct str word;

	if (next_word(&at, &word))
		(void)buf_addstr(out, word);
}

static void file_type_add_all(struct buf *out)
{
	for (size_t i = 0; i < FILE_TYPES; i++) {
		(void)buf_adds(out, i > 0 ? ", " : "");
		file_type_add_name(&file_types[i], out);
	}
}

#define GREP_LIMIT       100
#define GREP_LIMIT_MAX   2000
#define GREP_CONTEXT_MAX 20 /* for more context there is read_file */
/* with more matches the pattern is too wide to read all of them */
#define GREP_OFFSET_MAX  100000
#define GREP_PATTERN_MAX 4096

enum { GREP_GLOB_FLAGS = PATTERN_BRACES | PATTERN_BASENAME };

static const struct row grep_params[] = {
	{"pattern", ROW_TEXT, true,
	 "Regular expression (PCRE2), matched within single lines", .aliases = "regex query",
	 .min = 1, .max = GREP_PATTERN_MAX, .unmasks = UNMASKS_PATTERN},
	{"path", ROW_PATH, false, "Folder or file to search; the workspace unless told",
	 .aliases = "file file_path folder dir directory", .initial = "\".\""},
	{"glob", ROW_TEXT, false,
	 "Only files that fit, like *.c or src/**/*.{h,c}; !*.min.js leaves out",
	 .aliases = "include", .min = 1, .max = PATTERN_MAX},
	{"file_type", ROW_TEXT, false, "Only files of a kind, like c, py, js, rust, md",
	 .aliases = "type", .min = 1, .max = 32},
	{"mode", ROW_CHOICE, false,
	 "lines; files: only names; count: lines per file; auto: lines, then counts of the "
	 "files that did not fit in",
	 .aliases = "output_mode", .choices = "auto lines files count",
	 .initial = "\"auto\""},
	{"ignore_case", ROW_FLAG, false, "Upper and lower case are the same",
	 .aliases = "case_insensitive -i", .initial = "false"},
	{"literal", ROW_FLAG, false, "The pattern is plain text",
	 .aliases = "fixed_strings fixed", .initial = "false"},
	{"context", ROW_COUNT, false, "Lines shown before and after each match",
	 .aliases = "-C", .initial = "0", .min = 0, .max = GREP_CONTEXT_MAX},
	{"limit", ROW_COUNT, false, "Most lines or files shown",
	 .aliases = "max_results head_limit", .initial = SHOWN_NUMBER(GREP_LIMIT),
	 .min = 1, .max = GREP_LIMIT_MAX},
	{"offset", ROW_COUNT, false, "Lines or files passed over first, to go on",
	 .initial = "0", .min = 0, .max = GREP_OFFSET_MAX},
	{0},
};

static enum grep_mode grep_mode_of(const char *name)
{
	if (!name || strcmp(name, "auto") == 0)
		return GREP_AUTO;
	if (strcmp(name, "lines") == 0)
		return GREP_LINES;
	return strcmp(name, "files") == 0 ? GREP_FILES : GREP_COUNT;
}

/* Append TEXT as an argument, so that the sentence has a call that works. */
static void add_argument(struct buf *out, const char *name, struct str text)
{
	(void)buf_addf(out, "%s=", name);
	(void)value_quote(text, out);
}

static bool grep_read_pattern(struct grep *grep, struct tool_result *result)
{
	struct str pattern = call_str(grep->call, "pattern");
	bool literal = call_flag(grep->call, "literal");
	struct err err;

	if (grep_pattern_init(&grep->pattern, pattern, literal,
			      call_flag(grep->call, "ignore_case"), &err)) {
		if (!grep->pattern.line_end)
			return true;
		(void)tool_fail(result,
				"The search goes line by line, so a pattern with a line "
				"end finds nothing. Search for one of its lines, and "
				"use context to see those around it.");
		return false;
	}
	(void)tool_fail(result, "pattern is not valid: %s. To search for it as plain text: ",
			err.text);
	add_argument(&result->text, "pattern", pattern);
	(void)buf_adds(&result->text, ", literal=true.");
	if (pattern_is_one(pattern) && (pattern.data[0] == '*' || pattern.data[0] == '?')) {
		(void)buf_adds(&result->text, " To find files by name: the tool glob with ");
		add_argument(&result->text, "pattern", pattern);
		(void)buf_addc(&result->text, '.');
	}
	return false;
}

static bool grep_read_type(struct grep *grep, struct tool_result *result)
{
	const char *name = call_text(grep->call, "file_type");
	const struct file_type *near;

	grep->type = name ? file_type_find(name) : NULL;
	if (!name || grep->type)
		return true;
	near = file_type_nearest(name);
	(void)tool_fail(result, "file_type %s is not known.", name);
	if (near) {
		(void)buf_adds(&result->text, " Did you mean ");
		file_type_add_name(near, &result->text);
		(void)buf_addc(&result->text, '?');
	}
	(void)buf_addf(&result->text,
		       " By name: glob=\"*.%s\". Known: ", name[0] == '.' ? name + 1 : name);
	file_type_add_all(&result->text);
	(void)buf_addc(&result->text, '.');
	return false;
}

static bool grep_read_glob(struct grep *grep, struct tool_result *result)
{
	const char *glob = call_text(grep->call, "glob");
	const char *workspace = files_workspace(grep->call->files);
	size_t size = strlen(workspace);
	struct err err;

	if (!glob)
		return true;
	grep->glob_excludes = glob[0] == '!';
	glob += grep->glob_excludes;
	while (strncmp(glob, "./", 2) == 0)
		glob += 2;
	if (strncmp(glob, workspace, size) == 0 && glob[size] == '/')
		glob += size + 1;
	if (glob[0] == '/') {
		(void)tool_fail(result, "glob is matched below path: write it without the "
					"leading slash, or name its folder as path.");
		return false;
	}
	if (!pattern_check(str_of(glob), GREP_GLOB_FLAGS, &err)) {
		(void)tool_fail(result, "glob is not well-formed: %s", err.text);
		return false;
	}
	grep->glob = pattern_set_new(str_of(glob), GREP_GLOB_FLAGS);
	return true;
}

/* The folder, or the one file, to be searched. */
static bool grep_read_path(struct grep *grep, struct tool_result *result)
{
	struct files *files = grep->call->files;
	const char *path = call_text(grep->call, "path");
	struct file file;
	struct err err;

	if (walk_start_open(&grep->start, grep->call, path, &err))
		return true;
	if (err.code != ENOTDIR) {
		(void)shown_fail(grep->call, result, path, &err);
		return false;
	}
	file_init(&file);
	if (!files_reach(files, path, FILES_READ, &file, &err)) {
		file_fini(&file);
		(void)shown_fail(grep->call, result, path, &err);
		return false;
	}
	grep->file_fd = fd_take(&file.fd);
	(void)buf_adds(&grep->start.shown, files_shown(files, file.path.data));
	file_fini(&file);
	/* When the call names a file, it is searched whatever its name is. */
	pattern_set_free(grep->glob);
	grep->glob = NULL;
	grep->type = NULL;
	return true;
}

static enum result_status grep_execute(struct call *call, struct tool_result *result)
{
	struct grep *grep = memory_alloc(sizeof(*grep));

	grep->call = call;
	grep->mode = grep_mode_of(call_text(call, "mode"));
	grep->offset = (uint64_t)call_count(call, "offset", 0);
	grep->limit = (uint64_t)call_count(call, "limit", GREP_LIMIT);
	grep->context = (size_t)call_count(call, "context", 0);
	grep->keep = (size_t)(grep->offset + grep->limit) + GREP_AUTO_FILES;
	grep->first_only = grep->mode == GREP_FILES;
	grep->start.fd = grep->file_fd = -1;
	walk_summary_init(&grep->summary);
	if (grep_read_pattern(grep, result) && grep_read_type(grep, result) &&
	    grep_read_glob(grep, result) && grep_read_path(grep, result)) {
		grep_run(grep);
		grep_answer(grep, result);
		(void)glob_search_end(call, result, &grep->summary);
	}
	grep_forget(grep);
	pattern_set_free(grep->glob);
	grep_pattern_fini(&grep->pattern);
	walk_start_fini(&grep->start);
	walk_summary_fini(&grep->summary);
	fd_close(&grep->file_fd);
	free(grep);
	return result->status;
}

const struct tool grep_tool = {
	.name = "grep",
	.description = "Search file contents by regular expression, newest files first, with "
		       "totals. Ignored (.gitignore) and binary files are left out.",
	.example = "{\"pattern\": \"struct \\\\w+ \\\\{\", \"path\": \"src\", \"glob\": \"*.h\"}",
	.aliases = "grep_codebase search ripgrep rg",
	.params = grep_params,
	.effects = EFFECT_READS,
	.searches = true,
	.timeout_s = 30,
	.execute = grep_execute,
};
