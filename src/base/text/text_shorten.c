/*
 * text_shorten: a long text as its first third and its last two thirds, a long line as its
 * beginning and its end; see text.h.
 */
#include "base/text/text.h"

#include <inttypes.h>
#include <string.h>

/* The share of the limits that the beginning gets: ends of logs say what went wrong. */
enum { TEXT_HEAD_SHARE = 3 };

enum {
	/* The end of a line gets one quarter: its beginning says what the line is. */
	LINE_TAIL_SHARE = 4,
	/* Beginning and end get one fifth each when a place between them is shown, too. */
	LINE_EDGE_SHARE = 5,
	/* One third of what stands around the place is before it: what follows says more. */
	LINE_BEFORE_SHARE = 3,
};

/* A part of a line that is shown. */
struct line_span {
	uint64_t from, to;
};

/* A growing part of the text at one of its ends. */
struct text_part {
	size_t bytes, lines; /* left of its budget */
	size_t line_bytes;   /* longest line */
	size_t size;         /* taken of the source */
};

static size_t text_limit(size_t limit)
{
	return limit ? limit : SIZE_MAX;
}

/* The size of the first line, with its line end. */
static size_t text_first_line(struct str text)
{
	const char *end = memchr(text.data, '\n', text.size);

	return end ? (size_t)(end - text.data) + 1 : text.size;
}

/* The size of the last line, with its line end. */
static size_t text_last_line(struct str text)
{
	const char *before;

	if (text.size < 2)
		return text.size;
	before = memrchr(text.data, '\n', text.size - 1);
	return before ? text.size - (size_t)(before + 1 - text.data) : text.size;
}

/* Take a line of SIZE bytes when the budget allows. */
static bool text_take_line(struct text_part *part, size_t size)
{
	/* A line over its own limit costs what is shown of it, and its line end. */
	size_t cost = size - 1 > part->line_bytes ? part->line_bytes + 1 : size;

	if (part->lines == 0 || cost > part->bytes)
		return false;
	part->lines--;
	part->bytes -= cost;
	part->size += size;
	return true;
}

size_t text_line_head(size_t most)
{
	return most - most / LINE_TAIL_SHARE;
}

/* The spans of LINE, which is longer than MOST; in order, maybe touching. */
static size_t line_spans(const struct text_line *line, size_t most,
			 struct line_span spans[TEXT_LINE_PARTS])
{
	size_t head = text_line_head(most), tail = most - head;
	size_t edge = most / LINE_EDGE_SHARE, around = most - 2 * edge;
	uint64_t place_end = line->place_end, from = line->place;

	if (place_end > line->place + around)
		place_end = line->place + around;
	if (place_end == line->place || place_end <= head ||
	    line->place >= line->size - tail) {
		spans[0] = (struct line_span){0, head};
		spans[1] = (struct line_span){line->size - tail, line->size};
		return 2;
	}
	from -= (around - (place_end - from)) / LINE_BEFORE_SHARE;
	if (line->place < from || from < edge)
		from = edge;
	if (from + around > line->size - edge)
		from = line->size - edge - around;
	spans[0] = (struct line_span){0, edge};
	spans[1] = (struct line_span){from, from + around};
	spans[2] = (struct line_span){line->size - edge, line->size};
	return 3;
}

/* The bytes of SPAN, which shrinks until no character is cut and all of it is held. */
static struct str line_part(const struct text_line *line, struct line_span *span)
{
	struct str bytes = {0};
	uint64_t at = 0;
	size_t from, to, border;

	for (size_t i = 0; i < TEXT_LINE_PARTS; i++) {
		bytes = line->held[i].bytes;
		at = line->held[i].at;
		if (at <= span->from && span->to <= at + bytes.size)
			break;
		bytes.size = 0;
	}
	if (bytes.size == 0) {
		span->to = span->from;
		return (struct str){"", 0};
	}
	from = (size_t)(span->from - at);
	to = text_character_border(bytes, (size_t)(span->to - at));
	border = text_character_border(bytes, from);
	/* Forward, not back: the limit is not passed. */
	if (border < from)
		border += text_utf8_length(str_part(bytes, border, 4));
	if (border > to)
		border = to;
	*span = (struct line_span){at + border, at + to};
	return str_part(bytes, border, to - border);
}

static void add_gap(const struct text_line *line, uint64_t from, uint64_t to,
		    struct text_line_cut *cut, struct buf *out)
{
	if (from >= to)
		return;
	(void)buf_addf(out, " [… %" PRIu64 " of this line's %" PRIu64 " bytes left out …] ",
		       to - from, line->size);
	cut->left_out += to - from;
	cut->gap = from;
}

struct text_line_cut text_add_line(const struct text_line *line, size_t most,
				   void (*add)(struct str part, struct buf *out),
				   struct buf *out)
{
	struct line_span spans[TEXT_LINE_PARTS] = {{0, line->size}};
	size_t count = line->size <= most ? 1 : line_spans(line, most, spans);
	struct text_line_cut cut = {0};
	uint64_t at = 0;

	for (size_t i = 0; i < count; i++) {
		struct str part = line_part(line, &spans[i]);

		add_gap(line, at, spans[i].from, &cut, out);
		if (add)
			add(part, out);
		else
			(void)buf_addstr(out, part);
		at = spans[i].to;
	}
	add_gap(line, at, line->size, &cut, out);
	return cut;
}

/* Append LINES, each cut to line_bytes; counts what is cut. */
static bool text_add_lines(struct str lines, size_t line_bytes, struct buf *out,
			   struct text_cut *cut)
{
	while (lines.size) {
		size_t size = text_first_line(lines);
		struct str line = str_part(lines, 0, size);
		bool ended = line.data[size - 1] == '\n';
		struct text_line shown = {0};

		lines = str_part(lines, size, lines.size);
		line.size -= ended;
		shown.size = line.size;
		shown.held[0].bytes = line;
		cut->long_lines += line.size > line_bytes;
		cut->bytes += (size_t)text_add_line(&shown, line_bytes, NULL, out).left_out;
		if (ended)
			(void)buf_addc(out, '\n');
		if (out->overflowed)
			return false;
	}
	return true;
}

/*
 * Not even one line fits: show a piece of it, so that a text without line ends is not
 * left out whole. Where a line of that end is shown, the cut stays on the line border.
 */
static void text_cut_head(struct str middle, struct text_part *head)
{
	size_t room = head->bytes < head->line_bytes ? head->bytes : head->line_bytes;

	if (head->size || head->lines == 0)
		return;
	middle.size = text_first_line(middle);
	head->size = text_character_border(middle, room);
	head->bytes -= head->size;
	head->lines--;
}

static void text_cut_tail(struct str middle, struct text_part *tail)
{
	size_t room = tail->bytes < tail->line_bytes ? tail->bytes : tail->line_bytes;
	size_t last = text_last_line(middle), at, border;
	struct str line = str_part(middle, middle.size - last, last);

	if (tail->size || tail->lines == 0)
		return;
	at = last > room ? last - room : 0;
	border = text_character_border(line, at);
	/* Forward, not back: the budget is not passed. */
	if (border < at)
		border += text_utf8_length(str_part(line, border, 4));
	tail->size = last - border;
}

static bool text_add_mark(struct str middle, bool after_line_end, struct buf *out)
{
	size_t lines = text_count_lines(middle);

	return (after_line_end || buf_addc(out, '\n')) && buf_adds(out, "[… ") &&
	       text_add_count(out, lines, "line") && buf_adds(out, ", ") &&
	       text_add_count(out, middle.size, "byte") && buf_adds(out, " left out …]\n");
}

bool text_shorten(struct str text, const struct text_limits *limits, struct buf *out,
		  struct text_cut *cut)
{
	size_t bytes = text_limit(limits->bytes), lines = text_limit(limits->lines);
	size_t line_bytes = text_limit(limits->line_bytes);
	const size_t head_bytes =
		limits->head_bytes ? limits->head_bytes : bytes / TEXT_HEAD_SHARE;
	struct text_part head = {head_bytes, lines / TEXT_HEAD_SHARE, line_bytes, 0};
	struct text_part tail = {0};
	struct text_cut left_out = {0};
	struct str middle = text;

	if (text.size <= bytes && text_count_lines(text) <= lines) {
		head = (struct text_part){.size = text.size};
		middle.size = 0;
	}
	while (middle.size && text_take_line(&head, text_first_line(middle)))
		middle = str_part(text, head.size, text.size);
	if (middle.size)
		text_cut_head(middle, &head);
	/* The tail may use the room that the head could not use. */
	tail.bytes = bytes - head_bytes + head.bytes;
	tail.lines = lines - lines / TEXT_HEAD_SHARE + head.lines;
	tail.line_bytes = line_bytes;
	middle = str_part(text, head.size, middle.size ? text.size : 0);
	while (middle.size && text_take_line(&tail, text_last_line(middle)))
		middle = str_part(text, head.size, text.size - head.size - tail.size);
	if (middle.size)
		text_cut_tail(middle, &tail);
	middle = str_part(text, head.size, text.size - head.size - tail.size);
	if (!text_add_lines(str_part(text, 0, head.size), line_bytes, out, &left_out))
		return false;
	if (middle.size) {
		bool line_ended = head.size == 0 || text.data[head.size - 1] == '\n';

		if (!text_add_mark(middle, line_ended, out))
			return false;
		left_out.bytes += middle.size;
		left_out.lines += text_count_lines(middle);
	}
	if (!text_add_lines(str_part(text, text.size - tail.size, tail.size), line_bytes,
			    out, &left_out))
		return false;
	*cut = left_out;
	return true;
}
