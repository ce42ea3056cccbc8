/*
 * line: the history of typed texts, the rows on the screen, and the effect of each key.
 */

#include "tui/line.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "tui/paint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The history of typed texts: a ring in memory, and a file. */

struct line_history {
	char *items[LINE_HISTORY_ENTRIES];
	size_t first, count; /* index of the oldest entry, and number of entries */
	int fd;              /* of the file; -1: none */
};

struct line_history *line_history_new(void)
{
	struct line_history *history = memory_alloc(sizeof(*history));

	history->fd = -1;
	return history;
}

void line_history_free(struct line_history *history)
{
	if (history == NULL)
		return;
	for (size_t i = 0; i < LINE_HISTORY_ENTRIES; i++)
		free(history->items[i]);
	fd_close(&history->fd);
	free(history);
}

size_t line_history_count(const struct line_history *history)
{
	return history != NULL ? history->count : 0;
}

struct str line_history_item(const struct line_history *history, size_t at)
{
	return str_of(history->items[(history->first + at) % LINE_HISTORY_ENTRIES]);
}

static bool is_worth_it(const struct line_history *history, struct str text)
{
	if (text.size == 0 || text.size > LINE_HISTORY_ENTRY_MAX || text.data[0] == ' ' ||
	    str_trim(text).size == 0 || insets_are_in(text))
		return false;
	return history->count == 0 ||
	       !str_equal(line_history_item(history, history->count - 1), text);
}

static void keep(struct line_history *history, struct str text)
{
	size_t at = (history->first + history->count) % LINE_HISTORY_ENTRIES;

	free(history->items[at]);
	history->items[at] = memory_copy_str(text);
	if (history->count < LINE_HISTORY_ENTRIES)
		history->count++;
	else
		history->first = (history->first + 1) % LINE_HISTORY_ENTRIES;
}

static void print_entry(struct str text, struct buf *out)
{
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] == '\n')
			(void)buf_adds(out, "\\n");
		else if (text.data[i] == '\\')
			(void)buf_adds(out, "\\\\");
		else
			(void)buf_addc(out, text.data[i]);
	}
	(void)buf_addc(out, '\n');
}

/* Decode one line of the file. False: we cannot have written this line. */
static bool parse_entry(struct str line, struct buf *out)
{
	for (size_t i = 0; i < line.size; i++) {
		char c = line.data[i];

		if (c == '\\' && i + 1 < line.size) {
			c = line.data[++i];
			if (c != 'n' && c != '\\')
				return false;
			c = c == 'n' ? '\n' : c;
		} else if (c == '\\' || c == 0x7f || ((unsigned char)c < ' ' && c != '\t')) {
			return false;
		}
		if (!buf_addc(out, c))
			return false;
	}
	return text_is_utf8(buf_str(out));
}

void line_history_parse(struct line_history *history, struct str text)
{
	struct str line;
	struct buf entry;

	buf_init(&entry, LINE_HISTORY_ENTRY_MAX);
	while (str_next_line(&text, &line)) {
		buf_clear(&entry);
		if (parse_entry(line, &entry) && is_worth_it(history, buf_str(&entry)))
			keep(history, buf_str(&entry));
	}
	buf_fini(&entry);
}

/*
 * Replace the content of a file that is too long by its newer half (TEXT is the whole
 * content).
 */
static bool shorten(int fd, struct str text, struct err *err)
{
	struct str half = str_part(text, text.size - LINE_HISTORY_FILE_MAX / 2, text.size);

	half = str_part(half, str_find(half, STR("\n"), 0) + 1, half.size);
	if (ftruncate(fd, 0) < 0)
		return err_set(err, errno, "cutting it: %s", strerror(errno));
	return fd_write_all(fd, half.data, half.size, err);
}

static bool read_file(struct line_history *history, int fd, struct err *err)
{
	struct stat st;
	struct buf text;
	bool sound;

	if (fstat(fd, &st) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return err_set(err, EPERM, "this is no file of yours");
	if ((st.st_mode & 0777) != 0600 && fchmod(fd, 0600) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	/*
	 * Our own file is cut long before it has this size. Of another file only the end
	 * is read.
	 */
	if (st.st_size > 4 * LINE_HISTORY_FILE_MAX)
		(void)lseek(fd, -(off_t)LINE_HISTORY_FILE_MAX, SEEK_END);
	buf_init(&text, 4 * LINE_HISTORY_FILE_MAX + 1);
	sound = fd_read_all(fd, &text, "its text", err);
	if (sound) {
		line_history_parse(history, buf_str(&text));
		if (text.size > LINE_HISTORY_FILE_MAX)
			sound = shorten(fd, buf_str(&text), err);
	}
	buf_fini(&text);
	return sound;
}

bool line_history_open(struct line_history *history, const char *path, struct err *err)
{
	auto_close int fd = -1;
	bool sound;

	if (!fd_make_folders(path, err))
		return false;
	fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
		  0600);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	(void)flock(fd, LOCK_EX);
	sound = read_file(history, fd, err);
	(void)flock(fd, LOCK_UN);
	if (!sound)
		return err_while(err, "reading %s", path);
	history->fd = fd_take(&fd);
	return true;
}

void line_history_add(struct line_history *history, struct str text)
{
	struct buf entry;

	if (history == NULL || !is_worth_it(history, text))
		return;
	keep(history, text);
	if (history->fd < 0)
		return;
	buf_init(&entry, 2 * LINE_HISTORY_ENTRY_MAX + 1);
	print_entry(text, &entry);
	(void)flock(history->fd, LOCK_EX);
	(void)fd_write_all(history->fd, entry.data, entry.size, NULL);
	(void)flock(history->fd, LOCK_UN);
	buf_fini(&entry);
}

/* Searches the history for entries that contain a text, again after each key (Ctrl+R). */

static void show_text(struct line *line, struct str text);
static void line_set(struct line *line, struct str text);

static void show_entry(struct line *line, size_t entry)
{
	struct str item = line_history_item(line->history, entry);
	size_t at = str_find(item, buf_str(&line->search.wanted), 0);

	line->search.entry = entry;
	show_text(line, item);
	line->cursor = at != SIZE_MAX ? at : item.size;
}

/*
 * Search from the entry FROM on, backwards (BACK) or forwards. Without a match the shown
 * entry stays.
 */
static void look(struct line *line, size_t from, bool back)
{
	struct line_search *search = &line->search;
	size_t count = line_history_count(line->history);

	search->failed = false;
	if (search->wanted.size == 0)
		return;
	for (size_t at = from; at < count; at = back ? at - 1 : at + 1) {
		struct str item = line_history_item(line->history, at);

		if (str_find(item, buf_str(&search->wanted), 0) != SIZE_MAX) {
			show_entry(line, at);
			return;
		}
	}
	search->failed = true;
}

static void line_search_start(struct line *line)
{
	struct line_search *search = &line->search;

	buf_clear(&search->wanted);
	buf_clear(&search->before);
	(void)buf_addstr(&search->before, buf_str(&line->text));
	search->on = true;
	search->failed = false;
	search->entry = line_history_count(line->history);
}

static void end(struct line *line, bool keep)
{
	const size_t cursor = line->cursor;

	line->search.on = false;
	show_text(line, buf_str(&line->search.before));
	if (!keep || line->search.entry >= line_history_count(line->history))
		return;
	line->entry = line->search.entry;
	buf_clear(&line->draft);
	(void)buf_addstr(&line->draft, buf_str(&line->search.before));
	changes_begin(&line->changes);
	line_set(line, line_history_item(line->history, line->entry));
	line->cursor = cursor;
}

/*
 * Let the search that is on handle KEY. False: the search has ended, and the caller
 * applies KEY to the text that was found.
 */
static bool line_search_take(struct line *line, enum typing_key key, struct str typed)
{
	struct line_search *search = &line->search;
	size_t newest = line_history_count(line->history) - 1;

	switch (key) {
	case TYPING_TEXT:
	case TYPING_PASTE:
		(void)buf_addstr(&search->wanted, typed);
		look(line, search->entry <= newest ? search->entry : newest, true);
		return true;
	case TYPING_BACKSPACE:
		buf_truncate(&search->wanted,
			     text_character_border(buf_str(&search->wanted),
						   search->wanted.size > 0
							   ? search->wanted.size - 1
							   : 0));
		look(line, newest, true);
		return true;
	case TYPING_SEARCH:
		look(line, search->entry <= newest ? search->entry - 1 : newest, true);
		return true;
	case TYPING_SEARCH_ON:
		look(line, search->entry + 1, false);
		return true;
	case TYPING_NONE:
	case TYPING_PASTE_END:
		return true;
	case TYPING_CANCEL:
	case TYPING_EDITOR: /* the key that leaves a search in a shell */
	case TYPING_INTERRUPT:
		end(line, false);
		return true;
	case TYPING_ESCAPE:
		end(line, true);
		return true;
	default:
		end(line, true);
		return false;
	}
}

/*
 * Breaks the text into rows, and finds the shortest change from one set of rows to
 * another.
 */

enum {
	FRAME_MAX = 1 << 20,     /* a terminal of a thousand rows of a thousand columns */
	ONE_CHARACTER = 4,       /* bytes; in more there are several in one place */
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
 * The size of the first character of TEXT. An inset is a character by itself, whatever stands
 * beside it.
 */
static size_t character_size(struct str text, size_t *columns)
{
	size_t size = paint_width_character(text, columns);

	if (size <= INSETS_SIZE)
		return size;
	for (size_t i = 0; i < size; i++) {
		if (insets_are_in(str_part(text, i, INSETS_SIZE)))
			return i > 0 ? i : INSETS_SIZE;
	}
	return size;
}

/* Append the label of INSET, or what ROOM columns show of it. */
static void show_inset(const struct inset *inset, size_t room, size_t *columns,
		       struct buf *out)
{
	const struct str label = str_of(inset->label);
	const struct str part = str_part(label, 0, paint_width_fit(label, room));

	*columns = paint_width_of(part);
	if (out != NULL)
		(void)buf_addstr(out, part);
}

/* Of the rows that are composed: the insets in their text, and the columns for it. */
struct frame_look {
	const struct insets *insets;
	size_t room;
};

/*
 * Append the first character of TEXT, as it is shown, to OUT (may be NULL). Returns its
 * size in TEXT.
 */
static size_t show_character(const struct frame_look *look, struct str text,
			     size_t *columns, struct buf *out)
{
	unsigned char next = text.size > 1 ? (unsigned char)text.data[1] : 0;
	const struct inset *inset = insets_at(look->insets, text);
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
	if (inset != NULL) {
		show_inset(inset, look->room, columns, out);
		return INSETS_SIZE;
	}
	size = character_size(text, columns);
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
 * Find the end of the row that begins at FROM (*END), and the beginning of the next row
 * (*NEXT). False: the row is the last.
 */
static bool row_end(const struct frame_look *look, struct str text, size_t from,
		    size_t *end, size_t *next)
{
	size_t used = 0, at = from;

	while (at < text.size && text.data[at] != '\n') {
		const struct str rest = str_part(text, at, text.size);
		size_t columns;
		size_t size = show_character(look, rest, &columns, NULL);
		const size_t reach = size > ONE_CHARACTER
					     ? paint_width_reach(str_part(rest, 0, size))
					     : 0;

		if (used + (reach > columns ? reach : columns) > look->room && at > from) {
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

void line_look_paint(const struct line_look *look, struct paint *paint)
{
	paint_init(paint);
	paint->colour = look->colour;
	paint->unicode = look->unicode;
	paint->theme = look->theme;
}

static void add_row(struct line_frame *frame, const char *mark, struct str part,
		    const struct frame_look *inside, const struct line_look *look)
{
	struct buf *out = &frame->rows;

	struct paint paint;

	line_look_paint(look, &paint);
	paint_text(&paint, PAINT_BOLD, str_of(mark));
	(void)buf_addstr(out, buf_str(&paint.out));
	(void)buf_addc(out, ' ');
	paint_fini(&paint);
	while (part.size > 0) {
		size_t columns;
		size_t size = show_character(inside, part, &columns, out);

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
		line_look_paint(look, &paint);
		paint_one_line(&paint, PAINT_DIM, buf_str(&text), columns);
		(void)buf_addstr(&frame->rows, buf_str(&paint.out));
		(void)buf_addc(&frame->rows, '\n');
		paint_fini(&paint);
	}
	buf_fini(&text);
}

static size_t columns_between(const struct frame_look *look, struct str text, size_t from,
			      size_t to)
{
	size_t used = 0, columns;

	while (from < to) {
		from += show_character(look, str_part(text, from, text.size), &columns,
				       NULL);
		used += columns;
	}
	return used;
}

static size_t rows_of_menu(const struct line *line, size_t most)
{
	const size_t rows =
		line->menu.count < MENU_ROWS_MAX ? line->menu.count : MENU_ROWS_MAX;

	return rows < most ? rows : most;
}

/* The argument that may follow, dim behind the last row, where it has room. */
static void add_argument(struct line_frame *frame, const struct line *line,
			 const struct line_look *look, size_t columns)
{
	const struct str hint = buf_str(&line->menu.hint);
	struct paint paint;

	if (hint.size == 0 || line->cursor != line->text.size ||
	    frame->column + paint_width_of(hint) >= columns)
		return;
	line_look_paint(look, &paint);
	paint_text(&paint, PAINT_DIM, hint);
	buf_truncate(&frame->rows, frame->rows.size - 1);
	(void)buf_addstr(&frame->rows, buf_str(&paint.out));
	(void)buf_addc(&frame->rows, '\n');
	paint_fini(&paint);
}

void line_frame_compose(struct line_frame *frame, const struct line *line,
			const struct line_look *look)
{
	struct str text = buf_str(&line->text);
	size_t columns = look->columns > COLUMNS_LEAST ? look->columns : COLUMNS_LEAST;
	size_t rows = look->rows > ROWS_LEAST ? look->rows : ROWS_LEAST;
	/* The last column stays free: the cursor may stand there, and nothing wraps. */
	const struct frame_look inside = {&line->insets, columns - 1 - PROMPT_COLUMNS};
	const bool has_hint = line->search.on || line->hint.size > 0;
	const size_t menu = rows_of_menu(line, rows - 1 - has_hint);
	size_t shown = rows - has_hint - menu;
	size_t count = 1, first = 0, from = 0, end, next;
	const char *more = look->unicode ? "…" : "~";

	frame->row = 0;
	for (size_t start = 0; row_end(&inside, text, start, &end, &next); start = next) {
		if (next <= line->cursor) {
			frame->row = count;
			from = next;
		}
		count++;
	}
	frame->column = PROMPT_COLUMNS + columns_between(&inside, text, from, line->cursor);
	if (count > shown && frame->row > shown / 2)
		first = frame->row - shown / 2 < count - shown ? frame->row - shown / 2
							       : count - shown;
	buf_clear(&frame->rows);
	from = 0;
	for (size_t row = 0; row < count && row < first + shown; row++, from = next) {
		bool cut = (row == first && first > 0) ||
			   (row + 1 == first + shown && row + 1 < count);

		(void)row_end(&inside, text, from, &end, &next);
		if (row >= first)
			add_row(frame,
				cut        ? more
				: row == 0 ? ">"
					   : " ",
				str_part(text, from, end - from), &inside, look);
	}
	if (frame->row + 1 == count)
		add_argument(frame, line, look, columns - 1);
	frame->row -= first;
	(void)menu_add_rows(&line->menu, menu, columns - 1, look, &frame->rows);
	add_hint(frame, line, look, columns - 1);
}

static void move(struct buf *out, size_t from, size_t to)
{
	if (to < from)
		(void)buf_addf(out, "\x1b[%zuA", from - to);
	else if (to > from)
		(void)buf_addf(out, "\x1b[%zuB", to - from);
}

static void move_to_column(struct buf *out, size_t column)
{
	if (column > 0)
		(void)buf_addf(out, "\x1b[%zuG", column + 1);
	else
		(void)buf_addc(out, '\r');
}

/*
 * When the row INDEX only became longer, append just its new end to OUT; false: it did not. The
 * cursor is in row *AT, and where SHOWN has it when STILL. The new end must not change how wide the
 * old row is, as a mark does that joins its last character.
 */
static bool append(const struct line_frame *shown, size_t index, struct str old,
		   struct str row, size_t *at, bool still, struct buf *out)
{
	const struct str end = str_part(row, old.size, row.size);
	bool certain;

	if (old.size == 0 || !str_starts(row, old))
		return false;
	const size_t columns = paint_width_of_row(old, NULL);
	const size_t added = paint_width_of_row(end, &certain);

	if (!certain || paint_width_of_row(row, NULL) != columns + added)
		return false;
	if (!still || index != shown->row || columns != shown->column) {
		move(out, *at, index);
		move_to_column(out, columns);
		*at = index;
	}
	return buf_addstr(out, end);
}

/*
 * Append to OUT what replaces the row of the cursor, which is at its begin. A row in which
 * terminals draw a character narrower or wider than it counts is blank before, and has nothing
 * behind its end.
 */
static void replace_row(struct str row, struct buf *out)
{
	bool certain;

	(void)paint_width_of_row(row, &certain);
	if (certain) {
		(void)buf_addstr(out, row);
	} else {
		(void)buf_adds(out, "\x1b[K");
		paint_steady(row, 0, out);
	}
	(void)buf_adds(out, "\x1b[K");
}

void line_frame_change(const struct line_frame *shown, const struct line_frame *wanted,
		       struct buf *out)
{
	struct str old_rest = buf_str(&shown->rows), rest = buf_str(&wanted->rows);
	struct str old, row;
	size_t at = shown->row, index = 0, there = text_count_lines(old_rest);
	const size_t begun = out->size;

	if (there == 0)
		there = 1;
	for (; str_next_line(&rest, &row); index++) {
		bool had = str_next_line(&old_rest, &old);

		if (had && str_equal(old, row))
			continue;
		if (had && append(shown, index, old, row, &at, out->size == begun, out))
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
		replace_row(row, out);
	}
	if (index < there && shown->rows.size > 0) {
		move(out, at, index);
		(void)buf_adds(out, "\r\x1b[J");
		at = index;
	}
	move(out, at, wanted->row);
	move_to_column(out, wanted->column);
}

/*
 * How many rows of a terminal that has broken ROW anew are above its cursor, which is in COLUMN of
 * it? Where terminals differ, the smaller number: with too few rows a part of ours stays on the
 * screen, with too many something else goes. Behind a row that fills its rows to the border some
 * keep the cursor there.
 */
static size_t rows_before_cursor(size_t column, struct str row, size_t columns)
{
	const size_t width = paint_width_of_row(row, NULL);

	if (column > 0 && width <= column)
		column--;
	return column / columns;
}

/* Is nothing in ROW but blanks and colours? */
static bool is_blank_row(struct str row)
{
	while (row.size > 0) {
		const size_t escape = str_find(row, STR("\x1b["), 0);
		const size_t end =
			escape != SIZE_MAX ? str_find(row, STR("m"), escape) : SIZE_MAX;

		if (str_trim(str_part(row, 0, escape)).size > 0)
			return false;
		row = end != SIZE_MAX ? str_part(row, end + 1, row.size) : STR("");
	}
	return true;
}

void line_frame_erase(const struct line_frame *shown, size_t columns,
		      enum term_reflow reflow, struct buf *out)
{
	struct str rest = buf_str(&shown->rows), row;
	size_t above = 0;

	if (reflow == TERM_CUTS)
		columns = SIZE_MAX;
	if (columns == 0)
		columns = 1;
	for (size_t i = 0; i < shown->row && str_next_line(&rest, &row); i++) {
		size_t used = paint_width_of_row(row, NULL);

		above += used > 0 ? 1 + (used - 1) / columns : 1;
	}
	if (!str_next_line(&rest, &row))
		row = STR("");
	if (reflow >= TERM_REFLOWS_BUT_BLANK)
		above += rows_before_cursor(shown->column, row, columns);
	if (reflow == TERM_REFLOWS_BUT_BLANK && above > 0 && is_blank_row(row))
		above--;
	move(out, above, 0);
	(void)buf_adds(out, "\r\x1b[J");
}

/* Moves in the text that is typed, and the keys for them. */

/*
 * The borders of characters are only known by reading from the start of the row. In a row
 * that is longer than this, any border that is found from a nearer place will do.
 */
enum { ROW_LOOKED_AT = 4096 };

static size_t line_row_start(const struct line *line, size_t at)
{
	const char *end = at > 0 ? memrchr(line->text.data, '\n', at) : NULL;

	return end != NULL ? (size_t)(end - line->text.data) + 1 : 0;
}

static size_t line_row_end(const struct line *line, size_t at)
{
	const char *end = memchr(line->text.data + at, '\n', line->text.size - at);

	return end != NULL ? (size_t)(end - line->text.data) : line->text.size;
}

static size_t line_behind(const struct line *line, size_t at)
{
	size_t columns;

	return at < line->text.size ? at + character_size(str_part(buf_str(&line->text),
								   at, line->text.size),
							  &columns)
				    : at;
}

static size_t line_before(const struct line *line, size_t at)
{
	size_t start = line_row_start(line, at), next;

	if (at == 0)
		return 0;
	if (start == at)
		return at - 1;
	if (at - start > ROW_LOOKED_AT)
		start = text_character_border(buf_str(&line->text), at - ROW_LOOKED_AT);
	for (next = line_behind(line, start); next < at; next = line_behind(line, start))
		start = next;
	return start;
}

/*
 * Is the byte at AT part of a word: a letter, a digit, "_", or a byte beyond ASCII (names
 * in any language)?
 */
static bool in_word(const struct line *line, size_t at)
{
	unsigned char c = (unsigned char)line->text.data[at];

	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c >= 0x80;
}

static bool is_blank(const struct line *line, size_t at)
{
	return strchr(" \t\n", line->text.data[at]) != NULL;
}

static size_t line_word_left(const struct line *line, size_t at)
{
	while (at > 0 && !in_word(line, at - 1))
		at--;
	while (at > 0 && in_word(line, at - 1))
		at--;
	return at;
}

static size_t line_word_right(const struct line *line, size_t at)
{
	while (at < line->text.size && !in_word(line, at))
		at++;
	while (at < line->text.size && in_word(line, at))
		at++;
	return at;
}

static size_t line_blank_left(const struct line *line, size_t at)
{
	while (at > 0 && is_blank(line, at - 1))
		at--;
	while (at > 0 && !is_blank(line, at - 1))
		at--;
	return at;
}

/* The place in the row that begins at START which has the same column as the cursor. */
static size_t same_column(const struct line *line, size_t start)
{
	const struct frame_look look = {&line->insets, SIZE_MAX};
	const struct str text = buf_str(&line->text);
	const size_t wanted =
		columns_between(&look, text, line_row_start(line, line->cursor),
				line->cursor);
	const size_t end = line_row_end(line, start);
	size_t used = 0, columns;

	while (start < end) {
		const size_t size = show_character(&look, str_part(text, start, text.size),
						   &columns, NULL);

		used += columns;
		if (used > wanted)
			break;
		start += size;
	}
	return start;
}

/* Leave the history: the text counts as the person's own again. */
static void line_history_leave(struct line *line)
{
	line->entry = line_history_count(line->history);
	buf_clear(&line->draft);
}

static void go_to_entry(struct line *line, size_t entry)
{
	size_t count = line_history_count(line->history);

	if (line->entry >= count) {
		buf_clear(&line->draft);
		(void)buf_addstr(&line->draft, buf_str(&line->text));
	}
	line->entry = entry;
	line_set(line, entry >= count ? buf_str(&line->draft)
				      : line_history_item(line->history, entry));
}

void line_to_draft(struct line *line)
{
	const size_t count = line_history_count(line->history);

	if (line->search.on)
		end(line, false);
	if (line->entry < count)
		go_to_entry(line, count);
}

static void go_up(struct line *line)
{
	size_t start = line_row_start(line, line->cursor);

	if (start > 0)
		line->cursor = same_column(line, line_row_start(line, start - 1));
	else if (line->entry > 0)
		go_to_entry(line, line->entry - 1);
}

static void go_down(struct line *line)
{
	size_t end = line_row_end(line, line->cursor);

	if (end < line->text.size)
		line->cursor = same_column(line, end + 1);
	else if (line->entry < line_history_count(line->history))
		go_to_entry(line, line->entry + 1);
}

/*
 * Handle the keys that move the cursor or go to another entry of the history. False: KEY
 * is another key.
 */
static bool line_move(struct line *line, enum typing_key key)
{
	switch (key) {
	case TYPING_LEFT:
		line->cursor = line_before(line, line->cursor);
		return true;
	case TYPING_RIGHT:
		line->cursor = line_behind(line, line->cursor);
		return true;
	case TYPING_HOME:
		line->cursor = line_row_start(line, line->cursor);
		return true;
	case TYPING_END:
		line->cursor = line_row_end(line, line->cursor);
		return true;
	case TYPING_WORD_LEFT:
		line->cursor = line_word_left(line, line->cursor);
		return true;
	case TYPING_WORD_RIGHT:
		line->cursor = line_word_right(line, line->cursor);
		return true;
	case TYPING_UP:
		go_up(line);
		return true;
	case TYPING_DOWN:
		go_down(line);
		return true;
	default:
		return false;
	}
}

/* More than a page of a hint helps nobody. */
enum { HINT_MAX = 4 << 10 };

void line_init(struct line *line, struct line_history *history,
	       struct line_completer completer)
{
	*line = (struct line){.history = history, .completer = completer};
	buf_init(&line->text, LINE_BYTES_MAX);
	buf_init(&line->hint, HINT_MAX);
	buf_init(&line->killed, LINE_BYTES_MAX);
	buf_init(&line->draft, LINE_BYTES_MAX);
	buf_init(&line->search.wanted, HINT_MAX);
	buf_init(&line->search.before, LINE_BYTES_MAX);
	buf_init(&line->pasted, LINE_BYTES_MAX);
	insets_init(&line->insets);
	changes_init(&line->changes);
	menu_init(&line->menu);
	line_start(line);
}

void line_fini(struct line *line)
{
	buf_fini(&line->text);
	buf_fini(&line->hint);
	buf_fini(&line->killed);
	buf_fini(&line->draft);
	buf_fini(&line->search.wanted);
	buf_fini(&line->search.before);
	menu_fini(&line->menu);
	buf_fini(&line->pasted);
	insets_clear(&line->insets);
	changes_clear(&line->changes);
}

/* Forget the insets. What was cut goes on to hold what they stood for. */
static void forget_insets(struct line *line)
{
	struct buf whole;

	if (insets_are_in(buf_str(&line->killed))) {
		buf_init(&whole, LINE_BYTES_MAX);
		if (!insets_add_whole(&line->insets, buf_str(&line->killed), &whole))
			buf_clear(&whole);
		buf_fini(&line->killed);
		line->killed = whole;
	}
	changes_clear(&line->changes);
	insets_clear(&line->insets);
}

void line_start(struct line *line)
{
	forget_insets(line);
	buf_clear(&line->text);
	buf_clear(&line->pasted);
	buf_clear(&line->hint);
	buf_clear(&line->draft);
	line->cursor = 0;
	line->killing = line->quitting = line->search.on = false;
	menu_close(&line->menu);
	line->menu.left = false;
	line->last = TYPING_NONE;
	line->entry = line_history_count(line->history);
}

void line_add_whole(const struct line *line, struct buf *out)
{
	(void)insets_add_whole(&line->insets, buf_str(&line->text), out);
}

struct value *line_pictures(const struct line *line)
{
	return insets_pictures(&line->insets, buf_str(&line->text));
}

void line_set_hint(struct line *line, const char *sentence)
{
	buf_clear(&line->hint);
	(void)buf_adds(&line->hint, sentence);
}

void line_say_hint(struct line *line, const char *sentence)
{
	buf_clear(&line->hint);
	keys_say(line->keys, sentence, &line->hint);
}

/* Show TEXT, with the cursor at its end, in place of the text, which is put back later. */
static void show_text(struct line *line, struct str text)
{
	buf_clear(&line->text);
	(void)buf_addstr(&line->text, text);
	line->cursor = line->text.size;
}

/* Set the text to TEXT and the cursor to its end. */
static void line_set(struct line *line, struct str text)
{
	changes_note(&line->changes, 0, buf_str(&line->text), text.size, line->cursor);
	show_text(line, text);
}

static void refuse_length(struct line *line)
{
	buf_clear(&line->hint);
	(void)buf_addf(&line->hint, "over %d MiB: put it into a file", LINE_BYTES_MAX >> 20);
}

/* line_insert, in the step that is under way; TYPED may hold insets of LINE. */
static void insert(struct line *line, struct str typed)
{
	size_t behind = line->text.size - line->cursor;
	char *room;

	if (typed.size == 0)
		return;
	room = insets_whole_size(&line->insets, buf_str(&line->text)) + typed.size <=
			       LINE_BYTES_MAX
		       ? buf_reserve(&line->text, typed.size)
		       : NULL;
	if (room == NULL) {
		refuse_length(line);
		return;
	}
	changes_note(&line->changes, line->cursor, STR(""), typed.size, line->cursor);
	memmove(line->text.data + line->cursor + typed.size,
		line->text.data + line->cursor, behind);
	memcpy(line->text.data + line->cursor, typed.data, typed.size);
	buf_commit(&line->text, typed.size);
	line->cursor += typed.size;
}

/* Insert TYPED, which comes from outside. */
static void insert_foreign(struct line *line, struct str typed)
{
	struct buf clean;

	if (!insets_are_in(typed)) {
		insert(line, typed);
		return;
	}
	buf_init(&clean, LINE_BYTES_MAX);
	insets_add_clean(typed, &clean);
	insert(line, buf_str(&clean));
	buf_fini(&clean);
}

void line_insert(struct line *line, struct str typed)
{
	changes_begin(&line->changes);
	insert_foreign(line, typed);
}

void line_insert_with(struct line *line, const struct insets *insets, struct str text)
{
	struct buf moved;

	buf_init(&moved, LINE_BYTES_MAX);
	insets_move(insets, text, &line->insets, &moved);
	insert(line, buf_str(&moved));
	buf_fini(&moved);
}

void line_replace(struct line *line, struct str typed)
{
	struct buf clean;

	buf_init(&clean, LINE_BYTES_MAX);
	insets_add_again(&line->insets, typed, &clean);
	if (!clean.overflowed) {
		changes_begin(&line->changes);
		line_set(line, buf_str(&clean));
	} else {
		refuse_length(line);
	}
	buf_fini(&clean);
}

/* Remove the text from FROM to TO. KILLED: keep it for Ctrl+Y. */
static void take_out(struct line *line, size_t from, size_t to, bool killed)
{
	struct str part = str_part(buf_str(&line->text), from, to - from);

	if (killed) {
		struct buf joined;

		buf_init(&joined, LINE_BYTES_MAX);
		/*
		 * A kill backwards is joined before the last killed text, a kill forwards
		 * behind it.
		 */
		if (line->killing && to != line->cursor)
			(void)buf_addstr(&joined, buf_str(&line->killed));
		(void)buf_addstr(&joined, part);
		if (line->killing && to == line->cursor)
			(void)buf_addstr(&joined, buf_str(&line->killed));
		buf_fini(&line->killed);
		line->killed = joined;
	}
	changes_note(&line->changes, from, part, 0, line->cursor);
	if (line->cursor >= to)
		line->cursor -= to - from;
	else if (line->cursor > from)
		line->cursor = from;
	buf_remove(&line->text, from, to - from);
}

/* Handle the keys that remove text. */
static bool take_deletion(struct line *line, enum typing_key key)
{
	size_t from = line->cursor, to = line->cursor;
	bool killed = key != TYPING_BACKSPACE && key != TYPING_DELETE && key != TYPING_EOF;

	if (key == TYPING_BACKSPACE)
		from = line_before(line, from);
	else if (key == TYPING_DELETE || key == TYPING_EOF)
		to = line_behind(line, to);
	else if (key == TYPING_KILL_TO_START)
		from = line_row_start(line, from);
	else if (key == TYPING_KILL_TO_END)
		to = line_row_end(line, to);
	else if (key == TYPING_KILL_WORD_LEFT)
		from = line_blank_left(line, from);
	else if (key == TYPING_KILL_NAME_LEFT)
		from = line_word_left(line, from);
	else if (key == TYPING_KILL_WORD_RIGHT)
		to = line_word_right(line, to);
	else
		return false;
	/* At the end of a row, remove the line end, as Emacs does. */
	if (from == to && key == TYPING_KILL_TO_END && to < line->text.size)
		to++;
	if (from != to)
		take_out(line, from, to, killed);
	line->killing = killed;
	return true;
}

static void swap(struct line *line)
{
	size_t right = line->cursor < line->text.size ? line->cursor
						      : line_before(line, line->cursor);
	size_t left = line_before(line, right);
	size_t end = line_behind(line, right);
	struct buf swapped;

	if (left == right)
		return;
	buf_init(&swapped, LINE_BYTES_MAX);
	(void)buf_add(&swapped, line->text.data + right, end - right);
	(void)buf_add(&swapped, line->text.data + left, right - left);
	changes_note(&line->changes, left,
		     str_part(buf_str(&line->text), left, swapped.size), swapped.size,
		     line->cursor);
	memcpy(line->text.data + left, swapped.data, swapped.size);
	line->cursor = end;
	buf_fini(&swapped);
}

/* Open the inset at the cursor, or before it, as text. False: there is none. */
static bool open_inset(struct line *line)
{
	const struct str text = buf_str(&line->text);
	size_t at = line->cursor;
	const struct inset *inset = insets_at(&line->insets, str_part(text, at, text.size));

	if (inset == NULL && at >= INSETS_SIZE) {
		at -= INSETS_SIZE;
		inset = insets_at(&line->insets, str_part(text, at, text.size));
	}
	if (inset == NULL || inset->picture != NULL)
		return false;
	take_out(line, at, at + INSETS_SIZE, false);
	insert(line, buf_str(&inset->text));
	return true;
}

/* The word at the cursor that the menu is about. */
static struct str word_of(const struct line *line)
{
	const size_t from = line->menu.from < line->cursor ? line->menu.from : line->cursor;

	return str_part(buf_str(&line->text), from, line->cursor - from);
}

/*
 * Put WORD in the place of the word at the cursor. WHOLE: it is complete, and a blank follows,
 * unless it is a folder, into which the person may want to go on.
 */
static void replace_word(struct line *line, struct str word, bool whole)
{
	auto_free char *copy = memory_copy_str(word);

	take_out(line, line->cursor - word_of(line).size, line->cursor, false);
	insert_foreign(line, str_of(copy));
	if (whole && !str_ends(str_of(copy), STR("/")))
		insert(line, STR(" "));
}

/*
 * Ask for the words again. They are for the keys that follow; a word that Escape has left
 * stays without a menu.
 */
static void look_for_words(struct line *line)
{
	struct menu *menu = &line->menu;
	const struct str before = str_part(buf_str(&line->text), 0, line->cursor);
	const size_t was = menu->from;

	menu_close(menu);
	menu->from = line->cursor;
	if (line->completer.complete == NULL)
		return;
	line->completer.complete(line->completer.context, before, &menu->from, &menu->words);
	if (menu->from > line->cursor)
		menu->from = line->cursor;
	menu->left = menu->left && menu->from == was && line->text.size > 0;
	menu_open(menu);
	if (line->completer.hint != NULL)
		line->completer.hint(line->completer.context, before, &menu->hint);
}

void line_offer(struct line *line)
{
	look_for_words(line);
	if (line->menu.left)
		menu_leave(&line->menu);
}

/*
 * Tab. It never loses a word: a beginning goes on, or the menu is shown, or the word that is chosen
 * there takes its place.
 */
static void complete(struct line *line)
{
	const bool was_open = line->menu.count > 0;

	if (!was_open && open_inset(line))
		return;
	if (!was_open)
		look_for_words(line);
	line->menu.left = false;
	if (line->menu.count == 0)
		return;
	const struct str common = menu_common(&line->menu), word = word_of(line);
	if (!line->menu.moved && line->menu.count > 1 && str_starts(common, word) &&
	    common.size > word.size)
		replace_word(line, common, false);
	else if (was_open || line->menu.count == 1)
		replace_word(line, menu_word(&line->menu, line->menu.at), true);
}

/*
 * Enter while the menu is open. True: the chosen word is in the text now. A command is chosen
 * by its first letters, a file by any of them; another argument only by an arrow, for a name
 * that is not in the menu may be meant.
 */
static bool choose(struct line *line)
{
	const struct str chosen = menu_word(&line->menu, line->menu.at);
	const struct str word = word_of(line);
	const bool by_letters = str_starts(chosen, STR("/"))
					? str_starts(chosen, word)
					: str_starts(chosen, STR("@"));

	if (str_equal(chosen, word) ||
	    (!line->menu.moved && (!by_letters || menu_has(&line->menu, word))))
		return false;
	replace_word(line, chosen, true);
	return true;
}

static enum line_result enter(struct line *line)
{
	/* A backslash at the end means that the text goes on. */
	if (line->cursor == line->text.size && line->cursor > 0 &&
	    line->text.data[line->cursor - 1] == '\\') {
		take_out(line, line->cursor - 1, line->cursor, false);
		insert(line, STR("\n"));
		return LINE_GOES_ON;
	}
	return str_trim(buf_str(&line->text)).size > 0 ? LINE_DONE : LINE_GOES_ON;
}

static enum line_result interrupt(struct line *line, bool quitting)
{
	if (line->text.size == 0 && quitting)
		return LINE_QUIT;
	if (line->text.size == 0) {
		line->quitting = true;
		line_say_hint(line, "{interrupt} again, or {quit}, to quit");
	}
	line_history_leave(line);
	line_set(line, STR(""));
	return LINE_GOES_ON;
}

/*
 * The person puts the text away. A text that the history does not keep as it is comes back by
 * undo.
 */
static void put_away(struct line *line)
{
	const size_t size = insets_whole_size(&line->insets, buf_str(&line->text));
	struct buf whole;

	buf_init(&whole, LINE_BYTES_MAX);
	line_add_whole(line, &whole);
	auto_value struct value *pictures = line_pictures(line);
	if (size <= LINE_HISTORY_ENTRY_MAX && pictures == NULL &&
	    !str_starts(buf_str(&whole), STR(" "))) {
		line_history_add(line->history, buf_str(&whole));
		line_say_hint(line, "put away: {up} brings it back");
	} else {
		line_say_hint(line, "put away, not into the history: {undo} brings it back");
	}
	buf_fini(&whole);
	line_history_leave(line);
	changes_begin(&line->changes);
	line_set(line, STR(""));
}

/* Escape closes a hint. Twice, it puts the text away, or goes back to an earlier prompt. */
static enum line_result escape(struct line *line, bool had_hint)
{
	const bool twice = line->last == TYPING_ESCAPE;

	line->last = TYPING_NONE;
	if (twice && line->text.size == 0)
		return LINE_REWIND;
	if (twice) {
		put_away(line);
	} else if (!had_hint) {
		line->last = TYPING_ESCAPE;
		line_say_hint(line,
			      line->text.size > 0
				      ? "{escape} again puts the text away"
				      : "{escape} again goes back to an earlier prompt");
	}
	return LINE_GOES_ON;
}

/* Add the pictures of the files PATHS, or of the clipboard (""). False: PATHS may be any text. */
static bool take_pictures(struct line *line, struct str paths)
{
	auto_value struct value *before = line_pictures(line), *pictures = NULL;
	struct err err = {0};
	struct buf marked;

	if (line->camera.pictures != NULL)
		pictures = line->camera.pictures(line->camera.context, paths, before, &err);
	if (err.code != 0)
		line_set_hint(line, err.text);
	if (pictures == NULL)
		return false;
	buf_init(&marked, INSETS_MAX * (INSETS_SIZE + 1));
	for (size_t i = 0; i < value_count(pictures); i++) {
		if (i > 0)
			(void)buf_addc(&marked, ' ');
		if (!insets_add_picture(&line->insets, value_ref(value_item(pictures, i)),
					&marked))
			line_set_hint(line,
				      "so many pastes and pictures have no room: send the text first");
	}
	insert(line, buf_str(&marked));
	buf_fini(&marked);
	return true;
}

/* insets_add_paste. In an empty line the insets of what was there before make room. */
static bool inset_paste(struct line *line, struct str pasted, struct buf *inset)
{
	if (insets_add_paste(&line->insets, pasted, inset))
		return true;
	if (line->text.size > 0 || line->draft.size > 0)
		return false;
	forget_insets(line);
	return insets_add_paste(&line->insets, pasted, inset);
}

/* All of a paste has come: it is text, an inset, or the path of a picture. */
static void take_pasted(struct line *line)
{
	const struct str pasted = buf_str(&line->pasted);
	struct buf inset;

	buf_init(&inset, INSETS_SIZE);
	if (line->pasted.overflowed ||
	    insets_whole_size(&line->insets, buf_str(&line->text)) + pasted.size >
		    LINE_BYTES_MAX)
		refuse_length(line);
	else if (!insets_are_for(pasted) || insets_are_in(pasted) ||
		 !inset_paste(line, pasted, &inset)) {
		if (str_trim(pasted).size == 0 || !take_pictures(line, pasted))
			insert_foreign(line, pasted);
	} else {
		insert(line, buf_str(&inset));
	}
	buf_fini(&inset);
	buf_clear(&line->pasted);
}

/* Begin a step of undo, unless KEY goes on with that of the key before. */
static void begin_step(struct line *line, enum typing_key key, struct str typed)
{
	const bool goes_on = (key == TYPING_TEXT && !str_starts(typed, STR(" "))) ||
			     key == TYPING_BACKSPACE;

	if (!goes_on || line->last != key)
		changes_begin(&line->changes);
}

/* Handle the keys that put something into the text. False: KEY is another key. */
static bool take_input(struct line *line, enum typing_key key, struct str typed)
{
	switch (key) {
	case TYPING_TEXT:
		insert_foreign(line, typed);
		return true;
	case TYPING_PASTE:
		(void)buf_addstr(&line->pasted, typed);
		return true;
	case TYPING_PASTE_END:
		take_pasted(line);
		return true;
	case TYPING_NEW_LINE:
		insert(line, STR("\n"));
		return true;
	case TYPING_YANK:
		insert(line, buf_str(&line->killed));
		return true;
	case TYPING_PICTURE:
		(void)take_pictures(line, STR(""));
		return true;
	case TYPING_SWAP:
		swap(line);
		return true;
	case TYPING_TAB:
		complete(line);
		return true;
	case TYPING_UNDO:
		if (!changes_undo(&line->changes, &line->text, &line->cursor))
			line_set_hint(line, "there is nothing to undo");
		return true;
	default:
		return false;
	}
}

/* The keys that end the line, or ask the caller for something. */
static enum line_result take_action(struct line *line, enum typing_key key, bool quitting)
{
	switch (key) {
	case TYPING_ENTER:
	case TYPING_QUEUE:
		return enter(line);
	case TYPING_INTERRUPT:
		return interrupt(line, quitting);
	case TYPING_CLEAR:
		return LINE_CLEARED;
	case TYPING_SUSPEND:
		return LINE_SUSPENDED;
	case TYPING_EDITOR:
		return LINE_EDITOR;
	case TYPING_REWIND:
		return line->text.size == 0 ? LINE_REWIND : LINE_GOES_ON;
	case TYPING_VIEWER:
		return LINE_VIEWER;
	case TYPING_TASKS:
		return LINE_TASKS;
	case TYPING_MODE:
		return LINE_MODE;
	case TYPING_SEARCH:
	case TYPING_SEARCH_ON:
		line_search_start(line);
		return LINE_GOES_ON;
	default:
		return LINE_GOES_ON;
	}
}

static enum line_result take_key(struct line *line, enum typing_key key, struct str typed)
{
	const bool quitting = line->quitting, had_hint = line->hint.size > 0;

	buf_clear(&line->hint);
	line->quitting = false;
	if (line->search.on && line_search_take(line, key, typed))
		return LINE_GOES_ON;
	if (key == TYPING_EOF && line->text.size == 0)
		return LINE_QUIT;
	if (key == TYPING_ESCAPE)
		return escape(line, had_hint);
	begin_step(line, key, typed);
	line->last = key;
	if (take_deletion(line, key))
		return LINE_GOES_ON;
	line->killing = false;
	if (line_move(line, key) || take_input(line, key, typed))
		return LINE_GOES_ON;
	return take_action(line, key, quitting);
}

/* The keys that belong to an open menu. False: KEY is another key. */
static bool take_menu(struct line *line, enum typing_key key, enum line_result *result)
{
	struct menu *menu = &line->menu;

	*result = LINE_GOES_ON;
	if (menu->count == 0 || line->search.on)
		return false;
	switch (key) {
	case TYPING_UP:
	case TYPING_DOWN:
		menu_move(menu, key == TYPING_DOWN);
		return true;
	case TYPING_ESCAPE:
	case TYPING_EDITOR:
	case TYPING_CANCEL:
		menu_leave(menu);
		return true;
	case TYPING_ENTER:
		changes_begin(&line->changes);
		if (!choose(line))
			return false;
		line_offer(line);
		/* A command that takes nothing more is complete. */
		if (str_starts(buf_str(&line->text), STR("/")) && menu->count == 0 &&
		    menu->hint.size == 0)
			*result = LINE_DONE;
		return true;
	default:
		return false;
	}
}

/* Does KEY change the text at the cursor, so that other words may follow? */
static bool is_typed(enum typing_key key)
{
	return key == TYPING_TEXT || key == TYPING_BACKSPACE || key == TYPING_TAB ||
	       key == TYPING_KILL_WORD_LEFT || key == TYPING_KILL_NAME_LEFT;
}

enum line_result line_take(struct line *line, enum typing_key key, struct str typed)
{
	enum line_result result;

	if (take_menu(line, key, &result)) {
		line->last = TYPING_NONE;
		return result;
	}
	result = take_key(line, key, typed);
	if (is_typed(key) && !line->search.on)
		line_offer(line);
	else if (key != TYPING_NONE)
		menu_close(&line->menu);
	if (line->text.size == 0)
		line->menu.left = false;
	return result;
}
