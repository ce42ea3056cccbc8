/* grep_show: see grep_show.h. All offsets kept are those in the file: the data moves. */
#include "tools/grep_show.h"

#include "base/text.h"
#include "tools/shown.h"

#include <inttypes.h>
#include <string.h>

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

static size_t show_line_end(const struct grep_scan *scan, size_t start)
{
	const char *end = memchr(scan->data + start, '\n', scan->limit - start);

	return end ? (size_t)(end - scan->data) : scan->limit;
}

/* The part of a long LINE around its match. */
static void add_line(struct str line, size_t match_start, size_t match_end, struct buf *out)
{
	size_t match = match_end - match_start;
	size_t from = 0;
	size_t to;

	if (str_ends(line, STR("\r")))
		line.size--;
	if (line.size > GREP_LINE_MAX) {
		size_t spare = match < GREP_LINE_MAX ? GREP_LINE_MAX - match : 0;

		/* More of what follows than of what came before. */
		from = match_start > spare / 3 ? match_start - spare / 3 : 0;
		if (from > line.size - GREP_LINE_MAX)
			from = line.size - GREP_LINE_MAX;
	}
	to = line.size - from > GREP_LINE_MAX ? from + GREP_LINE_MAX : line.size;
	from = text_character_border(line, from);
	to = text_character_border(line, to);
	if (from > 0)
		(void)buf_adds(out, "[…]");
	shown_add(str_part(line, from, to - from), out);
	if (to < line.size)
		(void)buf_adds(out, "[…]");
}

/* One line at START in the data: "12: text" when it matches, "12- text" for context. */
static void show_line(struct grep_show *show, size_t start, uint64_t number,
		      const struct grep_line *match)
{
	struct grep_scan *scan = show->scan;
	size_t end = show_line_end(scan, start);
	struct str line = {scan->data + start, end - start};
	size_t from;

	(void)buf_addf(show->out, "%" PRIu64 "%c ", number, match ? ':' : '-');
	from = show->out->size;
	add_line(line, match ? match->match_start - start : 0,
		 match ? match->match_end - start : 0, show->out);
	if (match) {
		struct value *row = value_new_object();

		value_set_text(row, "path", show->name);
		value_set_integer(row, "line", (int64_t)number);
		value_set_str(row, "text",
			      str_part(buf_str(show->out), from, show->out->size));
		value_append(show->rows, row);
	}
	(void)buf_addc(show->out, '\n');
	show->next = scan->base + end + 1;
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
