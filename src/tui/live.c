#include "tui/live.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "tui/console.h"
#include "tui/paint.h"
#include "tui/screen.h"
#include "tui/term.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROW_MAX = 4 << 10,
	/*
	 * Short rows stay one row each when the window becomes narrower, so that erasing them
	 * is exact.
	 */
	SHORT_COLUMNS = 72,
	ROWS_LEFT = 3, /* of the window, for what was printed */
	ROWS_LEAST = 2,
	COLUMNS_LEAST = 8,
	FRAME_MAX = 1 << 20,
	/* A longer line is broken: each piece that comes has all of it looked at again. */
	OPEN_MAX = 16 << 10,
};

struct live {
	int fd;
	struct screen_options look;
	pthread_mutex_t lock;
	bool on;
	unsigned hidden;  /* so many have taken the region off the terminal */
	size_t columns;   /* of the window, when the region was drawn */
	int gone;         /* errno of a failed write */
	struct buf open;  /* printed, but its line has no end yet */
	struct buf draft; /* of a line that is printed later, in its final form */
	struct buf status, waiting;
	struct line_frame typed; /* the rows of the editor … */
	size_t typed_columns;    /* … in a window of this width */
	struct line_frame shown, wanted;
};

struct live *live_new(int fd, const struct screen_options *look)
{
	struct live *live = memory_alloc(sizeof(*live));

	live->fd = fd;
	live->look = *look;
	(void)pthread_mutex_init(&live->lock, NULL);
	buf_init(&live->open, PAINT_MAX);
	buf_init(&live->draft, OPEN_MAX);
	buf_init(&live->status, ROW_MAX);
	buf_init(&live->waiting, ROW_MAX);
	line_frame_init(&live->typed);
	line_frame_init(&live->shown);
	line_frame_init(&live->wanted);
	return live;
}

void live_free(struct live *live)
{
	if (live == NULL)
		return;
	live_stop(live);
	(void)pthread_mutex_destroy(&live->lock);
	buf_fini(&live->open);
	buf_fini(&live->draft);
	buf_fini(&live->status);
	buf_fini(&live->waiting);
	line_frame_fini(&live->typed);
	line_frame_fini(&live->shown);
	line_frame_fini(&live->wanted);
	free(live);
}

static struct pty_size window(void)
{
	struct pty_size size = terminal_size();

	if (size.columns < COLUMNS_LEAST)
		size.columns = COLUMNS_LEAST;
	return size;
}

/* How many rows the region may have in a window of ROWS. */
static size_t rows_most(size_t rows)
{
	const size_t most = rows > ROWS_LEFT + ROWS_LEAST ? rows - ROWS_LEFT : ROWS_LEAST;

	return most < LIVE_ROWS_MAX ? most : LIVE_ROWS_MAX;
}

/* Append TEXT with blanks in place of its tabs, whose width nobody could tell later. */
static void add_without_tabs(struct str text, struct buf *out)
{
	enum { TAB_COLUMNS = 8 };
	size_t columns = 0;

	for (;;) {
		const size_t tab = str_find(text, STR("\t"), 0);
		const struct str part = str_part(text, 0, tab);

		(void)buf_addstr(out, part);
		if (tab == SIZE_MAX)
			return;
		columns += paint_width_of_row(part, NULL);
		do {
			(void)buf_addc(out, ' ');
		} while (++columns % TAB_COLUMNS != 0);
		text = str_part(text, tab + 1, text.size);
	}
}

/* Append TEXT, cut to COLUMNS from its end: what came last is what one wants to see. */
static void add_end(const struct live *live, struct str text, size_t columns,
		    struct buf *rows)
{
	struct buf flat, plain;

	buf_init(&flat, 2 * PAINT_MAX);
	buf_init(&plain, PAINT_MAX);
	add_without_tabs(text, &flat);
	text = buf_str(&flat);
	if (paint_width_of_row(text, NULL) > columns) {
		paint_clean(text, &plain);
		text = buf_str(&plain);
		/* A character takes two columns at most, and rarely more than four bytes. */
		if (text.size > columns * 8)
			text = str_part(text,
					text_character_border(text, text.size - columns * 8),
					text.size);
		for (size_t width = paint_width_of(text);
		     text.size > 0 && width >= columns;) {
			size_t wide;
			const size_t size = paint_width_character(text, &wide);

			text = str_part(text, size, text.size);
			width -= wide < width ? wide : width;
		}
		(void)buf_adds(rows, live->look.unicode ? "…" : "~");
	}
	(void)buf_addstr(rows, text);
	buf_fini(&plain);
	buf_fini(&flat);
}

static void add_short(const struct live *live, struct str row, size_t columns,
		      struct buf *rows)
{
	struct paint paint;

	paint_init(&paint);
	paint.colour = live->look.colour;
	paint.theme = live->look.theme;
	paint.unicode = live->look.unicode;
	paint_cut(&paint, PAINT_DIM, row, columns < SHORT_COLUMNS ? columns : SHORT_COLUMNS);
	(void)buf_addstr(rows, buf_str(&paint.out));
	(void)buf_addc(rows, '\n');
	paint_fini(&paint);
}

/* Compose the rows of the region. The last rows are the editor's: they are never left out. */
static void compose(struct live *live)
{
	const struct pty_size size = window();
	/* In a window of another width they are broken anew, which only live_resized can. */
	const bool fits = live->typed_columns == size.columns;
	const size_t typed = fits ? text_count_lines(buf_str(&live->typed.rows)) : 0;
	const size_t most = rows_most(size.rows);
	size_t left = most > typed ? most - typed : 0, above = 0;
	struct line_frame *wanted = &live->wanted;
	const struct str open = buf_str(live->open.size > 0 ? &live->open : &live->draft);
	struct str rest = buf_str(&live->waiting), row;

	buf_clear(&wanted->rows);
	if (open.size > 0 && left > 0) {
		add_end(live, open, size.columns - 1, &wanted->rows);
		(void)buf_addc(&wanted->rows, '\n');
		above++;
		left--;
	}
	while (left > (live->status.size > 0 ? 1 : 0) && str_next_line(&rest, &row)) {
		add_short(live, row, size.columns - 1, &wanted->rows);
		above++;
		left--;
	}
	if (live->status.size > 0 && left > 0) {
		add_short(live, buf_str(&live->status), size.columns - 1, &wanted->rows);
		above++;
	}
	if (fits)
		(void)buf_addstr(&wanted->rows, buf_str(&live->typed.rows));
	wanted->row = above + live->typed.row;
	wanted->column = live->typed.column;
	if (typed == 0) {
		/* Without an editor the cursor stands behind the last row. */
		wanted->row = above > 0 ? above - 1 : 0;
		wanted->column = 0;
	}
}

static void send(struct live *live, struct buf *out)
{
	struct err err;

	if (out->size > 0 && live->gone == 0 &&
	    !fd_write_all(live->fd, out->data, out->size, &err))
		live->gone = err.code;
	buf_clear(out);
}

/* The region is not on the terminal. */
static void forget(struct live *live)
{
	buf_clear(&live->shown.rows);
	live->shown.row = live->shown.column = 0;
}

static bool is_shown(const struct live *live)
{
	return live->on && live->hidden == 0;
}

/* Append to OUT what takes the region off the terminal. */
static void erase(struct live *live, struct buf *out)
{
	if (live->shown.rows.size > 0)
		line_frame_erase(&live->shown,
				 live->look.rewraps ? window().columns : LINE_ROWS_STAY,
				 out);
	forget(live);
}

/* Append to OUT what makes the terminal show the region as it is to be. */
static void change(struct live *live, struct buf *out)
{
	if (!is_shown(live))
		return;
	/* The window has another width, and its signal is still on the way. */
	if (live->columns != window().columns)
		erase(live, out);
	const struct line_frame before = live->shown;
	compose(live);
	live->columns = window().columns;
	if (before.row == live->wanted.row && before.column == live->wanted.column &&
	    str_equal(buf_str(&before.rows), buf_str(&live->wanted.rows)))
		return;
	line_frame_change(&live->shown, &live->wanted, out);
	live->shown = live->wanted;
	live->wanted = before;
}

/*
 * Can WHOLE, of COUNT rows, be inserted above the region? Only when each of its lines surely takes
 * one row, and the window has room for all of them beside the region.
 */
static bool is_insertable(const struct live *live, struct str whole, size_t *count)
{
	const struct pty_size size = window();
	const size_t there = text_count_lines(buf_str(&live->shown.rows));
	struct str rest = whole, row;

	for (*count = 0; str_next_line(&rest, &row); ++*count) {
		bool certain;

		if (paint_width_of_row(row, &certain) >= size.columns || !certain)
			return false;
	}
	return there > 0 && *count + there + 1 <= size.rows && live->columns == size.columns;
}

/* Append to OUT what prints the COUNT rows WHOLE above the region. */
static void insert(const struct live *live, struct str whole, size_t count, struct buf *out)
{
	const size_t there = text_count_lines(buf_str(&live->shown.rows));
	const size_t below = there - 1 - live->shown.row;
	struct str rest = whole, row;

	if (below > 0)
		(void)buf_addf(out, "\x1b[%zuB", below);
	for (size_t i = 0; i < count; i++)
		(void)buf_addc(out, '\n');
	(void)buf_addf(out, "\x1b[%zuA\r\x1b[%zuL", there - 1 + count, count);
	for (bool first = true; str_next_line(&rest, &row); first = false) {
		if (!first)
			(void)buf_adds(out, "\r\n");
		(void)buf_addstr(out, row);
	}
	(void)buf_addf(out, "\r\x1b[%zuB", live->shown.row + 1);
	if (live->shown.column > 0)
		(void)buf_addf(out, "\x1b[%zuC", live->shown.column);
}

bool live_print(struct live *live, struct str text)
{
	struct buf out;
	size_t count, end;
	bool fine;

	(void)pthread_mutex_lock(&live->lock);
	buf_init(&out, FRAME_MAX + PAINT_MAX);
	if (!is_shown(live)) {
		(void)buf_addstr(&out, text);
		send(live, &out);
	} else {
		const char *last = memrchr(text.data, '\n', text.size);

		end = last != NULL ? (size_t)(last - text.data) + 1 : 0;
		if (live->open.size + text.size - end > OPEN_MAX)
			end = text.size;
		if (end > 0) {
			struct buf whole;

			buf_init(&whole, 2 * PAINT_MAX);
			(void)buf_addstr(&whole, buf_str(&live->open));
			(void)buf_addstr(&whole, str_part(text, 0, end));
			(void)buf_end_line(&whole);
			buf_clear(&live->open);
			if (is_insertable(live, buf_str(&whole), &count)) {
				insert(live, buf_str(&whole), count, &out);
			} else {
				erase(live, &out);
				(void)buf_addstr(&out, buf_str(&whole));
			}
			buf_fini(&whole);
		}
		(void)buf_addstr(&live->open, str_part(text, end, text.size));
		change(live, &out);
		send(live, &out);
	}
	buf_fini(&out);
	fine = live->gone == 0;
	errno = live->gone;
	(void)pthread_mutex_unlock(&live->lock);
	return fine;
}

/* Show what was changed. The caller holds the lock, which is given back. */
static void shown_and_unlock(struct live *live)
{
	struct buf out;

	buf_init(&out, FRAME_MAX);
	change(live, &out);
	send(live, &out);
	buf_fini(&out);
	(void)pthread_mutex_unlock(&live->lock);
}

static void set(struct live *live, struct buf *place, struct str text)
{
	(void)pthread_mutex_lock(&live->lock);
	buf_clear(place);
	(void)buf_addstr(place, text);
	shown_and_unlock(live);
}

void live_set_draft(struct live *live, struct str row)
{
	set(live, &live->draft, row);
}

void live_set_status(struct live *live, struct str row)
{
	set(live, &live->status, row);
}

void live_set_waiting(struct live *live, struct str waiting)
{
	set(live, &live->waiting, waiting);
}

/* Compose the rows of LINE for the present size. The caller holds the lock. */
static void compose_line(struct live *live, const struct line *line)
{
	const struct pty_size size = window();
	const size_t most = rows_most(size.rows);
	const struct line_look look = {
		.columns = size.columns,
		/* One row is left for what is under way. */
		.rows = most > ROWS_LEAST ? most - 1 : most,
		.colour = live->look.colour,
		.unicode = live->look.unicode,
	};

	line_frame_compose(&live->typed, line, &look);
	live->typed_columns = size.columns;
}

void live_set_line(struct live *live, const struct line *line)
{
	(void)pthread_mutex_lock(&live->lock);
	compose_line(live, line);
	shown_and_unlock(live);
}

void live_start(struct live *live)
{
	(void)pthread_mutex_lock(&live->lock);
	live->on = true;
	live->hidden = 0;
	forget(live);
	shown_and_unlock(live);
}

/* Take the region off the terminal; the caller holds the lock. */
static void leave(struct live *live)
{
	struct buf out;

	buf_init(&out, FRAME_MAX + PAINT_MAX);
	erase(live, &out);
	if (live->open.size > 0) {
		(void)buf_addstr(&out, buf_str(&live->open));
		(void)buf_addc(&out, '\n');
	}
	send(live, &out);
	buf_clear(&live->open);
	buf_fini(&out);
}

void live_stop(struct live *live)
{
	(void)pthread_mutex_lock(&live->lock);
	if (is_shown(live))
		leave(live);
	live->on = false;
	buf_clear(&live->draft);
	buf_clear(&live->status);
	buf_clear(&live->waiting);
	buf_clear(&live->typed.rows);
	(void)pthread_mutex_unlock(&live->lock);
}

bool live_is_on(struct live *live)
{
	bool on;

	(void)pthread_mutex_lock(&live->lock);
	on = live->on;
	(void)pthread_mutex_unlock(&live->lock);
	return on;
}

void live_set_theme(struct live *live, const struct theme *theme)
{
	(void)pthread_mutex_lock(&live->lock);
	live->look.theme = theme;
	shown_and_unlock(live);
}

void live_set_terminal(struct live *live, const struct term *term)
{
	(void)pthread_mutex_lock(&live->lock);
	live->look.rewraps = term->rewraps;
	(void)pthread_mutex_unlock(&live->lock);
}

const struct theme *live_theme(struct live *live)
{
	const struct theme *theme;

	(void)pthread_mutex_lock(&live->lock);
	theme = live->look.theme;
	(void)pthread_mutex_unlock(&live->lock);
	return theme;
}

void live_resized(struct live *live, const struct line *line)
{
	struct buf out;

	(void)pthread_mutex_lock(&live->lock);
	buf_init(&out, FRAME_MAX);
	if (is_shown(live))
		erase(live, &out);
	if (line != NULL)
		compose_line(live, line);
	change(live, &out);
	send(live, &out);
	buf_fini(&out);
	(void)pthread_mutex_unlock(&live->lock);
}

void live_clear(struct live *live)
{
	struct buf out;

	(void)pthread_mutex_lock(&live->lock);
	buf_init(&out, ROW_MAX);
	(void)buf_adds(&out, "\x1b[H\x1b[2J");
	send(live, &out);
	buf_fini(&out);
	forget(live);
	shown_and_unlock(live);
}

void live_redraw(struct live *live)
{
	(void)pthread_mutex_lock(&live->lock);
	forget(live);
	shown_and_unlock(live);
}

void live_hide(struct live *live)
{
	(void)pthread_mutex_lock(&live->lock);
	if (is_shown(live))
		leave(live);
	live->hidden++;
	(void)pthread_mutex_unlock(&live->lock);
}

void live_show(struct live *live)
{
	(void)pthread_mutex_lock(&live->lock);
	if (live->hidden > 0)
		live->hidden--;
	shown_and_unlock(live);
}
