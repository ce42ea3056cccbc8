#include "tui/live.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "tui/backlog.h"
#include "tui/lent/terminal.h"
#include "tui/paint.h"
#include "tui/region/footer.h"
#include "tui/screen.h"
#include "tui/term.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
	FOOTER_WINDOW = 8, /* a window of fewer rows has other use for one */
	FRAME_MAX = 1 << 20,
	/* A longer line is broken: each piece that comes has all of it looked at again. */
	OPEN_MAX = 16 << 10,
	/* 60 frames a second are as smooth as a screen is; a slow line gets 20. */
	FRAME_MS = 16,
	SLOW_FRAME_MS = 50,
	SLOW_WRITE_MS = 20, /* a write that takes longer has met a slow line */
	/* A window that is pulled with the mouse has many sizes: the last one is drawn. */
	RESIZE_MS = 30,
	WAITING_TEXT_MAX = 4 << 20, /* for a terminal that takes nothing */
	FRAME_TEXT = 256 << 10,     /* of that, in one frame */
	RECENT_MAX = 256 << 10, /* of what was printed, for live_clear: many windows full */
};

/* The most bytes that are kept of a text. */
static const size_t text_most[LIVE_TEXTS] = {
	[LIVE_DRAFT] = OPEN_MAX,
	[LIVE_STATUS] = ROW_MAX,
	[LIVE_WORK] = LIVE_ROWS_MAX * ROW_MAX,
	[LIVE_WAITING] = ROW_MAX,
};

/* The thread that draws frames. */
enum drawing { DRAWING_NOT, DRAWING_GOES_ON, DRAWING_ENDS };

struct live {
	int fd;
	struct screen_options look;
	pthread_mutex_t lock;
	bool on;
	bool held;       /* another program has the terminal: what is printed waits */
	unsigned hidden; /* so many have taken the region off the terminal */
	struct pty_size drawn; /* the window in which the region was drawn */
	int gone;              /* errno of a failed write */
	struct buf open;       /* printed, but its line has no end yet */
	struct buf texts[LIVE_TEXTS];
	struct footer footer;
	struct line_frame typed; /* the rows of the editor … */
	size_t typed_columns;    /* … in a window of this width */
	struct line_frame shown, wanted;
	struct backlog backlog; /* printed, and not on the terminal yet */
	struct buf recent;      /* the end of what is on the terminal, in whole lines */
	bool has_frames;        /* the terminal shows what comes in a frame together */
	bool due;               /* something is to be drawn */
	bool resized;           /* since the last frame */
	bool writing;           /* a thread writes, and does not hold the lock */
	int64_t sized_ms;       /* when another size was seen */
	int64_t drawn_ms;       /* when the last frame was written */
	int slowest_ms;         /* the least time between frames on this line */
	int frame_ms;           /* the same after the last write */
	enum drawing drawing;
	pthread_t thread;
	pthread_cond_t news, written; /* for the thread; for those who wait for a write */
};

static void init_condition(pthread_cond_t *condition)
{
	pthread_condattr_t attributes;

	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(condition, &attributes);
	(void)pthread_condattr_destroy(&attributes);
}

struct live *live_new(int fd, const struct screen_options *look)
{
	struct live *live = memory_alloc(sizeof(*live));
	const char *ssh = getenv("SSH_CONNECTION");

	live->fd = fd;
	live->look = *look;
	live->slowest_ms = ssh != NULL && *ssh != '\0' ? SLOW_FRAME_MS : FRAME_MS;
	live->frame_ms = live->slowest_ms;
	(void)pthread_mutex_init(&live->lock, NULL);
	init_condition(&live->news);
	init_condition(&live->written);
	buf_init(&live->open, PAINT_MAX);
	for (size_t i = 0; i < LIVE_TEXTS; i++)
		buf_init(&live->texts[i], text_most[i]);
	buf_init(&live->recent, 2 * RECENT_MAX);
	backlog_init(&live->backlog, WAITING_TEXT_MAX - FRAME_TEXT, look->colour);
	line_frame_init(&live->typed);
	line_frame_init(&live->shown);
	line_frame_init(&live->wanted);
	return live;
}

static void end_thread(struct live *live)
{
	if (live->drawing == DRAWING_NOT)
		return;
	(void)pthread_mutex_lock(&live->lock);
	live->drawing = DRAWING_ENDS;
	(void)pthread_cond_signal(&live->news);
	(void)pthread_mutex_unlock(&live->lock);
	(void)pthread_join(live->thread, NULL);
}

void live_free(struct live *live)
{
	if (live == NULL)
		return;
	live_stop(live);
	end_thread(live);
	(void)pthread_mutex_destroy(&live->lock);
	(void)pthread_cond_destroy(&live->news);
	(void)pthread_cond_destroy(&live->written);
	buf_fini(&live->open);
	for (size_t i = 0; i < LIVE_TEXTS; i++)
		buf_fini(&live->texts[i]);
	buf_fini(&live->recent);
	backlog_fini(&live->backlog);
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

/*
 * Has the window another size than the region was drawn for? Then rows of the region may have been
 * broken, and a window that lost height may have lost those below the cursor.
 */
static bool is_other_window(const struct live *live)
{
	const struct pty_size size = window();

	return live->drawn.columns != size.columns || live->drawn.rows != size.rows;
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
	if (paint_width_reach(text) > columns) {
		paint_clean(text, &plain);
		text = buf_str(&plain);
		/* A character takes two columns at most, and rarely more than four bytes. */
		if (text.size > columns * 8)
			text = str_part(text,
					text_character_border(text, text.size - columns * 8),
					text.size);
		for (size_t width = paint_width_reach(text);
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

/* Does a window of ROWS show the footer? */
static bool has_footer(const struct live *live, size_t rows)
{
	return live->footer.count > 0 && rows >= FOOTER_WINDOW;
}

static void add_footer(const struct live *live, size_t columns, struct buf *rows)
{
	struct paint paint;

	paint_init(&paint);
	paint.colour = live->look.colour;
	paint.theme = live->look.theme;
	paint.unicode = live->look.unicode;
	footer_paint(&live->footer, &paint,
		     columns < SHORT_COLUMNS ? columns : SHORT_COLUMNS);
	(void)buf_addstr(rows, buf_str(&paint.out));
	(void)buf_addc(rows, '\n');
	paint_fini(&paint);
}

/* Compose the rows of the region. The last rows are the editor's: they are never left out. */
static void compose(struct live *live)
{
	const struct pty_size size = window();
	const size_t most = rows_most(size.rows);
	const size_t broken = text_count_lines(buf_str(&live->typed.rows));
	/* In another window they are broken anew, which only live_resized can. */
	const bool fits = live->typed_columns == size.columns && broken <= most;
	const size_t typed = fits ? broken : 0;
	size_t left = most > typed ? most - typed : 0, above = 0;
	struct line_frame *wanted = &live->wanted;
	const struct str open =
		buf_str(live->open.size > 0 ? &live->open : &live->texts[LIVE_DRAFT]);
	const size_t kept = live->texts[LIVE_STATUS].size > 0;
	struct str waiting = buf_str(&live->texts[LIVE_WAITING]);
	const bool footed = has_footer(live, size.rows) && left > kept;
	struct str rest = buf_str(&live->texts[LIVE_WORK]), row;

	left -= footed;
	buf_clear(&wanted->rows);
	if (open.size > 0 && left > 0) {
		add_end(live, open, size.columns - 1, &wanted->rows);
		(void)buf_addc(&wanted->rows, '\n');
		above++;
		left--;
	}
	/* The rows nearest to the typed text are the person's own. */
	for (size_t count = text_count_lines(rest) + text_count_lines(waiting);
	     count > left - (left > kept ? kept : left); count--)
		(void)(str_next_line(&rest, &row) || str_next_line(&waiting, &row));
	while (left > kept && (str_next_line(&rest, &row) || str_next_line(&waiting, &row))) {
		add_short(live, row, size.columns - 1, &wanted->rows);
		above++;
		left--;
	}
	if (live->texts[LIVE_STATUS].size > 0 && left > 0) {
		add_short(live, buf_str(&live->texts[LIVE_STATUS]), size.columns - 1,
			  &wanted->rows);
		above++;
	}
	if (fits)
		(void)buf_addstr(&wanted->rows, buf_str(&live->typed.rows));
	if (footed)
		add_footer(live, size.columns - 1, &wanted->rows);
	wanted->row = above + live->typed.row;
	wanted->column = live->typed.column;
	if (typed == 0) {
		/* Without an editor the cursor stands behind the last row. */
		wanted->row = above > 0 ? above - 1 : 0;
		wanted->column = 0;
	}
}

/* Wait until no thread writes. The caller holds the lock, here and below. */
static void wait_for_writer(struct live *live)
{
	while (live->writing)
		(void)pthread_cond_wait(&live->written, &live->lock);
}

/*
 * Write OUT, and give back the lock meanwhile: a terminal may take nothing for hours. What is
 * shown has been changed before, and nobody else writes until this has ended.
 */
static void send(struct live *live, struct buf *out)
{
	const int64_t begun_ms = clock_now_ms();
	struct err err = {0};

	if (out->size == 0 || live->gone != 0)
		return;
	live->writing = true;
	(void)pthread_mutex_unlock(&live->lock);
	const bool fine = fd_write_all(live->fd, out->data, out->size, &err);
	(void)pthread_mutex_lock(&live->lock);
	if (!fine)
		live->gone = err.code;
	live->drawn_ms = clock_now_ms();
	live->frame_ms = live->drawn_ms - begun_ms > SLOW_WRITE_MS ? SLOW_FRAME_MS
								   : live->slowest_ms;
	live->writing = false;
	(void)pthread_cond_broadcast(&live->written);
}

/* The region is not on the terminal. */
static void forget(struct live *live)
{
	buf_clear(&live->shown.rows);
	live->shown.row = live->shown.column = 0;
}

static bool is_shown(const struct live *live)
{
	return live->on && live->hidden == 0 && !live->held;
}

/*
 * Append to OUT what takes the region off the terminal. In the window that it was drawn for, its rows
 * are where they were.
 */
static void erase(struct live *live, struct buf *out)
{
	const bool stands = !live->resized && !is_other_window(live);

	if (live->shown.rows.size > 0)
		line_frame_erase(&live->shown, window().columns,
				 stands ? TERM_CUTS : live->look.reflow, out);
	forget(live);
}

/* How many rows of A and B are not the same. */
static size_t count_different(struct str a, struct str b)
{
	struct str row, other;
	size_t count = 0;

	while (str_next_line(&a, &row)) {
		if (!str_next_line(&b, &other) || !str_equal(row, other))
			count++;
	}
	return count + text_count_lines(b);
}

/* Append to OUT what makes the terminal show the region as it is to be. Returns the rows. */
static size_t change(struct live *live, struct buf *out)
{
	/* The signal of another size may still be on the way. */
	if (live->resized || is_other_window(live))
		erase(live, out);
	live->resized = false;
	const struct line_frame before = live->shown;
	compose(live);
	live->drawn = window();
	if (before.row == live->wanted.row && before.column == live->wanted.column &&
	    str_equal(buf_str(&before.rows), buf_str(&live->wanted.rows)))
		return 0;
	line_frame_change(&live->shown, &live->wanted, out);
	live->shown = live->wanted;
	live->wanted = before;
	return count_different(buf_str(&before.rows), buf_str(&live->shown.rows));
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
	return there > 0 && *count + there + 1 <= size.rows;
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
	(void)buf_addf(out, "\x1b[%zuB\x1b[%zuG", live->shown.row + 1,
		       live->shown.column + 1);
}

/* Remember TEXT, which was printed. */
static void note_printed(struct live *live, struct str text)
{
	struct buf *recent = &live->recent;

	if (text.size > RECENT_MAX)
		text = str_part(text, text.size - RECENT_MAX, text.size);
	(void)buf_addstr(recent, text);
	if (recent->size > RECENT_MAX) {
		const size_t end = str_find(buf_str(recent), STR("\n"),
					    recent->size - RECENT_MAX / 2);

		buf_remove(recent, 0, end != SIZE_MAX ? end + 1 : recent->size);
	}
}

/*
 * Append to OUT what prints TEXT above the region. The part behind its last line end is shown, and
 * printed when its end comes. Returns the rows.
 */
static size_t print_above(struct live *live, struct str text, struct buf *out)
{
	const char *last = memrchr(text.data, '\n', text.size);
	size_t end = last != NULL ? (size_t)(last - text.data) + 1 : 0, count = 0;

	if (live->open.size + text.size - end > OPEN_MAX)
		end = text.size;
	if (end > 0) {
		struct buf whole;

		buf_init(&whole, 2 * PAINT_MAX);
		(void)buf_addstr(&whole, buf_str(&live->open));
		(void)buf_addstr(&whole, str_part(text, 0, end));
		(void)buf_end_line(&whole);
		buf_clear(&live->open);
		if (!live->resized && !is_other_window(live) &&
		    is_insertable(live, buf_str(&whole), &count)) {
			insert(live, buf_str(&whole), count, out);
		} else {
			erase(live, out);
			(void)buf_addstr(out, buf_str(&whole));
		}
		note_printed(live, buf_str(&whole));
		buf_fini(&whole);
	}
	(void)buf_addstr(&live->open, str_part(text, end, text.size));
	return count;
}

/* Mode 2026: the terminal shows what stands between these together, or nothing of it. */
static const char frame_begins[] = "\x1b[?2026h", frame_ends[] = "\x1b[?2026l";

/* Draw what is due now: one write. */
static void draw(struct live *live)
{
	struct buf out, text, frame;
	size_t rows = 0;

	wait_for_writer(live);
	/* Another thread may have taken the region off the terminal meanwhile. */
	if (!is_shown(live))
		return;
	live->due = false;
	buf_init(&out, FRAME_MAX + PAINT_MAX);
	if (!backlog_is_empty(&live->backlog)) {
		buf_init(&text, PAINT_MAX);
		backlog_take(&live->backlog, FRAME_TEXT, &text);
		rows = print_above(live, buf_str(&text), &out);
		buf_fini(&text);
	}
	rows += change(live, &out);
	buf_init(&frame, 2 * PAINT_MAX);
	if (live->has_frames && rows > 1) {
		(void)buf_adds(&frame, frame_begins);
		(void)buf_addstr(&frame, buf_str(&out));
		(void)buf_adds(&frame, frame_ends);
	} else {
		buf_swap(&frame, &out);
	}
	buf_fini(&out);
	send(live, &frame);
	buf_fini(&frame);
}

static bool is_due(const struct live *live)
{
	return is_shown(live) && live->gone == 0 &&
	       (live->due || !backlog_is_empty(&live->backlog));
}

/* How long the next frame has to wait, 0: it is time. */
static int64_t time_to_frame(struct live *live)
{
	const int64_t now_ms = clock_now_ms();
	int64_t at_ms = live->drawn_ms + live->frame_ms;

	if (is_other_window(live) && !live->resized) {
		live->resized = true;
		live->sized_ms = now_ms;
	}
	if (live->resized && live->sized_ms + RESIZE_MS > at_ms)
		at_ms = live->sized_ms + RESIZE_MS;
	return at_ms > now_ms ? at_ms - now_ms : 0;
}

static void wait_for_news(struct live *live, int64_t ms)
{
	enum { MS = 1000, NS_OF_MS = 1000000 };
	struct timespec at;

	(void)clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += (time_t)(ms / MS);
	at.tv_nsec += (long)(ms % MS) * NS_OF_MS;
	if (at.tv_nsec >= MS * NS_OF_MS) {
		at.tv_sec++;
		at.tv_nsec -= MS * NS_OF_MS;
	}
	(void)pthread_cond_timedwait(&live->news, &live->lock, &at);
}

/* The thread: it sleeps while nothing is due. */
static void *draw_frames(void *argument)
{
	struct live *live = argument;
	int64_t wait_ms;

	(void)pthread_mutex_lock(&live->lock);
	while (live->drawing == DRAWING_GOES_ON) {
		if (!is_due(live))
			(void)pthread_cond_wait(&live->news, &live->lock);
		else if ((wait_ms = time_to_frame(live)) > 0)
			wait_for_news(live, wait_ms);
		else
			draw(live);
	}
	(void)pthread_mutex_unlock(&live->lock);
	return NULL;
}

/* Something is to be drawn: soon. Without a thread it is drawn now. */
static void draw_soon(struct live *live)
{
	live->due = true;
	if (live->drawing == DRAWING_GOES_ON)
		(void)pthread_cond_signal(&live->news);
	else if (is_due(live))
		draw(live);
}

/* Draw all that is due now, whatever the time between frames. */
static void draw_all(struct live *live)
{
	do {
		draw(live);
	} while (is_shown(live) && live->gone == 0 && !backlog_is_empty(&live->backlog));
}

static void start_thread(struct live *live)
{
	sigset_t all, before;

	if (live->drawing != DRAWING_NOT)
		return;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&live->thread, NULL, draw_frames, live) == 0)
		live->drawing = DRAWING_GOES_ON;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool live_print(struct live *live, struct str text)
{
	bool fine;

	(void)pthread_mutex_lock(&live->lock);
	if (is_shown(live) || live->held) {
		backlog_add(&live->backlog, text);
		draw_soon(live);
	} else {
		struct buf out;

		buf_init(&out, PAINT_MAX);
		wait_for_writer(live);
		(void)buf_addstr(&out, text);
		note_printed(live, text);
		send(live, &out);
		buf_fini(&out);
	}
	fine = live->gone == 0;
	errno = live->gone;
	(void)pthread_mutex_unlock(&live->lock);
	return fine;
}

void live_set(struct live *live, enum live_text which, struct str text)
{
	struct buf *place = &live->texts[which];

	(void)pthread_mutex_lock(&live->lock);
	if (!str_equal(buf_str(place), text)) {
		buf_clear(place);
		(void)buf_addstr(place, text);
		draw_soon(live);
	}
	(void)pthread_mutex_unlock(&live->lock);
}

void live_set_footer(struct live *live, const struct footer *footer)
{
	(void)pthread_mutex_lock(&live->lock);
	live->footer = *footer;
	draw_soon(live);
	(void)pthread_mutex_unlock(&live->lock);
}

/* Compose the rows of LINE for the present size. The caller holds the lock. */
static void compose_line(struct live *live, const struct line *line)
{
	const struct pty_size size = window();
	const size_t most = rows_most(size.rows);
	const struct line_look look = {
		.columns = size.columns,
		/* One row is left for what is under way, and one for the footer. */
		.rows = most > ROWS_LEAST ? most - 1 - has_footer(live, size.rows) : most,
		.colour = live->look.colour,
		.unicode = live->look.unicode,
		.theme = live->look.theme,
	};

	line_frame_compose(&live->typed, line, &look);
	live->typed_columns = size.columns;
}

void live_set_line(struct live *live, const struct line *line)
{
	(void)pthread_mutex_lock(&live->lock);
	compose_line(live, line);
	draw_soon(live);
	(void)pthread_mutex_unlock(&live->lock);
}

size_t live_rows(void)
{
	return rows_most(window().rows);
}

void live_set_frame(struct live *live, const struct line_frame *frame)
{
	(void)pthread_mutex_lock(&live->lock);
	buf_clear(&live->typed.rows);
	(void)buf_addstr(&live->typed.rows, buf_str(&frame->rows));
	live->typed.row = frame->row;
	live->typed.column = frame->column;
	live->typed_columns = window().columns;
	draw_soon(live);
	(void)pthread_mutex_unlock(&live->lock);
}

void live_start(struct live *live)
{
	(void)pthread_mutex_lock(&live->lock);
	start_thread(live);
	live->on = true;
	live->hidden = 0;
	live->drawn = window();
	live->resized = false;
	forget(live);
	draw_soon(live);
	(void)pthread_mutex_unlock(&live->lock);
}

/*
 * Take the region off the terminal, when all that was printed is on it. ENDS: so is the line that is
 * not whole.
 */
static void leave(struct live *live, bool ends)
{
	struct buf out;

	wait_for_writer(live);
	if (!backlog_is_empty(&live->backlog))
		draw_all(live);
	wait_for_writer(live);
	buf_init(&out, FRAME_MAX + PAINT_MAX);
	erase(live, &out);
	if (ends && live->open.size > 0) {
		(void)buf_end_line(&live->open);
		(void)buf_addstr(&out, buf_str(&live->open));
		note_printed(live, buf_str(&live->open));
		buf_clear(&live->open);
	}
	send(live, &out);
	buf_fini(&out);
}

/* Another program may have the terminal: wait until it is ours again. */
static void wait_for_release(struct live *live)
{
	while (live->held)
		(void)pthread_cond_wait(&live->written, &live->lock);
}

void live_stop(struct live *live)
{
	(void)pthread_mutex_lock(&live->lock);
	wait_for_release(live);
	if (is_shown(live))
		leave(live, true);
	live->on = false;
	for (size_t i = 0; i < LIVE_TEXTS; i++)
		buf_clear(&live->texts[i]);
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
	if (live->look.theme != theme)
		draw_soon(live);
	live->look.theme = theme;
	(void)pthread_mutex_unlock(&live->lock);
}

void live_set_terminal(struct live *live, const struct term *term)
{
	(void)pthread_mutex_lock(&live->lock);
	live->look.reflow = term->reflow;
	live->has_frames = term->has_frames;
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
	(void)pthread_mutex_lock(&live->lock);
	live->resized = true;
	live->sized_ms = clock_now_ms();
	if (line != NULL)
		compose_line(live, line);
	draw_soon(live);
	(void)pthread_mutex_unlock(&live->lock);
}

void live_settle(struct live *live)
{
	(void)pthread_mutex_lock(&live->lock);
	if (is_shown(live))
		draw_all(live);
	(void)pthread_mutex_unlock(&live->lock);
}

/* The end of TEXT that takes at most ROWS rows of COLUMNS. */
static struct str last_rows(struct str text, size_t rows, size_t columns)
{
	size_t from = text.size;

	while (from > 0) {
		const char *end = memrchr(text.data, '\n', from - 1);
		const size_t begin = end != NULL ? (size_t)(end - text.data) + 1 : 0;
		const size_t width =
			paint_width_of_row(str_part(text, begin, from - 1 - begin), NULL);
		const size_t takes = width > 0 ? 1 + (width - 1) / columns : 1;

		if (takes > rows)
			break;
		rows -= takes;
		from = begin;
	}
	return str_part(text, from, text.size);
}

void live_clear(struct live *live)
{
	const struct pty_size size = window();
	struct buf out;

	(void)pthread_mutex_lock(&live->lock);
	wait_for_writer(live);
	const size_t below =
		is_shown(live) ? text_count_lines(buf_str(&live->shown.rows)) : 0;
	buf_init(&out, RECENT_MAX + ROW_MAX);
	(void)buf_adds(&out, "\x1b[H\x1b[J");
	(void)buf_addstr(&out, last_rows(buf_str(&live->recent),
					 size.rows > below ? size.rows - below : 0,
					 size.columns));
	forget(live);
	send(live, &out);
	buf_fini(&out);
	draw_soon(live);
	(void)pthread_mutex_unlock(&live->lock);
}

void live_redraw(struct live *live)
{
	(void)pthread_mutex_lock(&live->lock);
	wait_for_writer(live);
	forget(live);
	draw_soon(live);
	(void)pthread_mutex_unlock(&live->lock);
}

void live_hold(struct live *live)
{
	(void)pthread_mutex_lock(&live->lock);
	if (is_shown(live))
		leave(live, false);
	live->held = true;
	(void)pthread_mutex_unlock(&live->lock);
}

void live_release(struct live *live)
{
	(void)pthread_mutex_lock(&live->lock);
	live->held = false;
	live->drawn = window();
	live->resized = false;
	forget(live);
	(void)pthread_cond_broadcast(&live->written);
	draw_soon(live);
	(void)pthread_mutex_unlock(&live->lock);
}

void live_hide(struct live *live)
{
	(void)pthread_mutex_lock(&live->lock);
	wait_for_release(live);
	if (is_shown(live))
		leave(live, true);
	live->hidden++;
	(void)pthread_mutex_unlock(&live->lock);
}

void live_show(struct live *live)
{
	(void)pthread_mutex_lock(&live->lock);
	if (live->hidden > 0)
		live->hidden--;
	draw_soon(live);
	(void)pthread_mutex_unlock(&live->lock);
}
