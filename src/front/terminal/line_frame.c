/*
 * line_frame: breaks the text into rows, and finds the shortest change from one set of
 * rows to another.
 */
#include "front/terminal/line_frame.h"

#include "base/text/text.h"
#include "front/terminal/paint.h"

#include <string.h>

enum {
	FRAME_MAX = 1 << 20,     /* a terminal of a thousand rows of a thousand columns */
	CHARACTER_MAX = 4 << 10, /* one character with all combining marks, as \xHH */
	PROMPT_COLUMNS = 2,
	COLUMNS_LEAST = 8, /* below this the picture may be wrong, not the text */
	ROWS_LEAST = 2,
	TAB_COLUMNS = 4,
};

/*
 * Shown in place of an invisible character, or of one that would change the rest of the
 * row.
 */
static const char unseen[] = "\xef\xbf\xbd";

void line_frame_init(struct line_frame *frame)
{
	*frame = (struct line_frame){0};
	buf_init(&frame->rows, FRAME_MAX);
}

void line_frame_fini(struct line_frame *frame)
{
	buf_fini(&frame->rows);
}

/*
 * Append the first character of TEXT, as it is shown, to OUT (may be NULL). Returns its
 * size in TEXT.
 */
static size_t show_character(struct str text, size_t *columns, struct buf *out)
{
	unsigned char next = text.size > 1 ? (unsigned char)text.data[1] : 0;
	struct buf shown;
	size_t size;

	/*
	 * Fast path for ASCII: most characters are ASCII, and a paste may have a million
	 * of them.
	 */
	if (text.data[0] >= ' ' && text.data[0] < 0x7f && next < 0x80) {
		*columns = 1;
		if (out != NULL)
			(void)buf_addc(out, text.data[0]);
		return 1;
	}
	if (text.data[0] == '\t') {
		*columns = TAB_COLUMNS;
		if (out != NULL)
			(void)buf_addf(out, "%*s", TAB_COLUMNS, "");
		return 1;
	}
	size = width_character(text, columns);
	buf_init(&shown, CHARACTER_MAX);
	text_add_name(&shown, str_part(text, 0, size));
	if (shown.size != size) {
		*columns = 1;
		buf_clear(&shown);
		(void)buf_adds(&shown, unseen);
	}
	if (out != NULL)
		(void)buf_addstr(out, buf_str(&shown));
	buf_fini(&shown);
	return size;
}

/*
 * Find the end of the row that begins at FROM and has ROOM columns (*END), and the
 * beginning of the next row (*NEXT). False: the row is the last.
 */
static bool row_end(struct str text, size_t from, size_t room, size_t *end, size_t *next)
{
	size_t used = 0, at = from;

	while (at < text.size && text.data[at] != '\n') {
		size_t columns;
		size_t size = show_character(str_part(text, at, text.size), &columns, NULL);

		if (used + columns > room && at > from) {
			*end = *next = at;
			return true;
		}
		used += columns;
		at += size;
	}
	*end = at;
	*next = at + 1;
	return at < text.size;
}

static void add_row(struct line_frame *frame, const char *mark, struct str part,
		    const struct line_look *look)
{
	struct buf *out = &frame->rows;

	(void)buf_addf(out, "%s%s%s ", look->colour ? "\x1b[1m" : "", mark,
		       look->colour ? "\x1b[0m" : "");
	while (part.size > 0) {
		size_t columns;
		size_t size = show_character(part, &columns, out);

		part = str_part(part, size, part.size);
	}
	(void)buf_addc(out, '\n');
}

static void add_hint(struct line_frame *frame, const struct line *line,
		     const struct line_look *look, size_t columns)
{
	struct paint paint;
	struct buf text;

	buf_init(&text, FRAME_MAX);
	if (line->search.on)
		(void)buf_addf(&text, "%s: %s",
			       line->search.failed ? "not in the history" : "search",
			       line->search.wanted.data);
	else
		(void)buf_addstr(&text, buf_str(&line->hint));
	if (text.size > 0) {
		paint_init(&paint);
		paint.colour = look->colour;
		paint.unicode = look->unicode;
		paint_one_line(&paint, PAINT_DIM, buf_str(&text), columns);
		(void)buf_addstr(&frame->rows, buf_str(&paint.out));
		(void)buf_addc(&frame->rows, '\n');
		paint_fini(&paint);
	}
	buf_fini(&text);
}

static size_t columns_between(struct str text, size_t from, size_t to)
{
	size_t used = 0, columns;

	while (from < to) {
		from += show_character(str_part(text, from, text.size), &columns, NULL);
		used += columns;
	}
	return used;
}

void line_frame_compose(struct line_frame *frame, const struct line *line,
			const struct line_look *look)
{
	struct str text = buf_str(&line->text);
	size_t columns = look->columns > COLUMNS_LEAST ? look->columns : COLUMNS_LEAST;
	size_t rows = look->rows > ROWS_LEAST ? look->rows : ROWS_LEAST;
	/* The last column stays free: the cursor may stand there, and nothing wraps. */
	size_t room = columns - 1 - PROMPT_COLUMNS;
	size_t shown = line->search.on || line->hint.size > 0 ? rows - 1 : rows;
	size_t count = 1, first = 0, from = 0, end, next;
	const char *more = look->unicode ? "…" : "~";

	frame->row = 0;
	for (size_t start = 0; row_end(text, start, room, &end, &next); start = next) {
		if (next <= line->cursor) {
			frame->row = count;
			from = next;
		}
		count++;
	}
	frame->column = PROMPT_COLUMNS + columns_between(text, from, line->cursor);
	if (count > shown && frame->row > shown / 2)
		first = frame->row - shown / 2 < count - shown ? frame->row - shown / 2
							       : count - shown;
	buf_clear(&frame->rows);
	from = 0;
	for (size_t row = 0; row < count && row < first + shown; row++, from = next) {
		bool cut = (row == first && first > 0) ||
			   (row + 1 == first + shown && row + 1 < count);

		(void)row_end(text, from, room, &end, &next);
		if (row >= first)
			add_row(frame,
				cut        ? more
				: row == 0 ? ">"
					   : " ",
				str_part(text, from, end - from), look);
	}
	frame->row -= first;
	add_hint(frame, line, look, columns - 1);
}

static void move(struct buf *out, size_t from, size_t to)
{
	if (to < from)
		(void)buf_addf(out, "\x1b[%zuA", from - to);
	else if (to > from)
		(void)buf_addf(out, "\x1b[%zuB", to - from);
}

/* Columns of a row that we composed: colours are the only sequences in it. */
static size_t row_columns(struct str row)
{
	size_t columns = 0;

	while (row.size > 0) {
		size_t escape = str_find(row, STR("\x1b["), 0);
		size_t end =
			escape != SIZE_MAX ? str_find(row, STR("m"), escape) : SIZE_MAX;

		columns += width_of(str_part(row, 0, escape));
		row = end != SIZE_MAX ? str_part(row, end + 1, row.size) : STR("");
	}
	return columns;
}

/*
 * When the row only became longer at the cursor, append just its new end to OUT; false:
 * it did not.
 */
static bool append(const struct line_frame *shown, const struct line_frame *wanted,
		   struct str old, struct str row, struct buf *out)
{
	if (old.size == 0 || shown->row != wanted->row || !str_starts(row, old) ||
	    row_columns(old) != shown->column)
		return false;
	return buf_addstr(out, str_part(row, old.size, row.size));
}

void line_frame_change(const struct line_frame *shown, const struct line_frame *wanted,
		       struct buf *out)
{
	struct str old_rest = buf_str(&shown->rows), rest = buf_str(&wanted->rows);
	struct str old, row;
	size_t at = shown->row, index = 0, there = text_count_lines(old_rest);

	if (there == 0)
		there = 1;
	for (; str_next_line(&rest, &row); index++) {
		bool had = str_next_line(&old_rest, &old);

		if (had && str_equal(old, row))
			continue;
		if (had && index == shown->row && at == index &&
		    append(shown, wanted, old, row, out))
			continue;
		if (index >= there) {
			move(out, at, there - 1);
			(void)buf_adds(out, "\r\n");
			there++;
		} else {
			move(out, at, index);
			(void)buf_addc(out, '\r');
		}
		at = index;
		(void)buf_addstr(out, row);
		(void)buf_adds(out, "\x1b[K");
	}
	if (index < there && shown->rows.size > 0) {
		move(out, at, index);
		(void)buf_adds(out, "\r\x1b[J");
		at = index;
	}
	move(out, at, wanted->row);
	(void)buf_addc(out, '\r');
	if (wanted->column > 0)
		(void)buf_addf(out, "\x1b[%zuC", wanted->column);
}

void line_frame_erase(const struct line_frame *shown, size_t columns, struct buf *out)
{
	struct str rest = buf_str(&shown->rows), row;
	size_t above = 0;

	if (columns == 0)
		columns = 1;
	for (size_t i = 0; i < shown->row && str_next_line(&rest, &row); i++) {
		size_t used = row_columns(row);

		above += used > 0 ? (used + columns - 1) / columns : 1;
	}
	above += shown->column / columns;
	move(out, above, 0);
	(void)buf_adds(out, "\r\x1b[J");
}
