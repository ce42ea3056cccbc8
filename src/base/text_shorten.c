/* text_shorten: a long text as its first third and its last two thirds; see text.h. */
#include "base/text.h"

#include <string.h>

/* The share of the limits that the beginning gets: ends of logs say what went wrong. */
enum { TEXT_HEAD_SHARE = 3 };

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

/* Append LINES, each cut to line_bytes; counts what is cut. */
static bool text_add_lines(struct str lines, size_t line_bytes, struct buf *out,
			   struct text_cut *cut)
{
	while (lines.size) {
		size_t size = text_first_line(lines);
		struct str line = str_part(lines, 0, size);
		bool ended = line.data[size - 1] == '\n';
		size_t kept;

		lines = str_part(lines, size, lines.size);
		line.size -= ended;
		if (line.size <= line_bytes) {
			if (!buf_add(out, line.data, size))
				return false;
			continue;
		}
		kept = text_character_border(line, line_bytes);
		cut->bytes += line.size - kept;
		if (!buf_add(out, line.data, kept) || !buf_adds(out, " [… ") ||
		    !text_add_count(out, line.size - kept, "byte") ||
		    !buf_addf(out, " of this line left out …]%s", ended ? "\n" : ""))
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
	struct text_part head = {bytes / TEXT_HEAD_SHARE, lines / TEXT_HEAD_SHARE,
				 line_bytes, 0};
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
	/* What the head could not use, the tail may. */
	tail.bytes = bytes - bytes / TEXT_HEAD_SHARE + head.bytes;
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
