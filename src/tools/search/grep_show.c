/* grep_show: see grep_show.h. All offsets kept are those in the file: the data moves. */
#include "tools/search/grep_show.h"

#include "base/text/text.h"
#include "tools/shown.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/*
 * The number of the line that begins at offset AT, which is in the data. Goes forward
 * only.
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
	SHOW_PIECE = 16 << 10, /* of a line that the data does not hold whole */
	/* Held around each place that is shown, so that no character is cut. */
	SHOW_SLACK = 4,
	SHOW_HELD = 2 * (GREP_LINE_MAX + SHOW_SLACK),
};

static bool show_stopped(const struct grep_scan *scan)
{
	return scan->stopped && scan->stopped(scan->stop_owner);
}

/*
 * Where in the file the line begins that holds the byte START of the data: of a line longer
 * than the scan's buffer the data has a piece.
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

/* Where it ends: at its line feed, or at the end of the file. */
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

/* Of a line from FROM to TO of the file, that many bytes from AT on, as far as it has them. */
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
 * The line from FROM to TO of the file, a long one in part: its two ends, and the MATCH in it
 * if there is one. Returns what was left out.
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

/* Context still due from the last match, as far as UNTIL in the data. */
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

void grep_show_file(struct grep_show *show)
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
