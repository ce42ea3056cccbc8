/*
 * live: the last rows of a terminal, which change, below what is printed once and never touched
 * again. They are, from above: the line that is not whole yet, what is under way, what the person
 * has sent and nobody has taken, and the text that the person is typing, while an agent works and
 * while none does.
 *
 * All that is printed goes into the scrollback of the terminal: no other screen, no scroll regions.
 * A frame is one write. To print K whole rows above a region of N rows, the window is scrolled by
 * line feeds from the region's last row, K rows are inserted above the region (ECMA-48 IL), and
 * the text is written into them. This needs no knowledge of where on the screen the region is, and
 * no row above it is written to. Where that is not certain to hold (more rows than the window has
 * room for, a line that the terminal breaks itself, characters whose width terminals do not agree
 * on) the region is erased, the text printed, and the region drawn again.
 *
 * The region is never taller than the window without three rows, and never taller than
 * LIVE_ROWS_MAX; of the typed text, rows around the cursor are shown. The terminal's cursor stands
 * where the person types.
 *
 * A thread draws the frames, at most 60 a second, and 20 where a terminal is slow; while nothing
 * changes it sleeps, and nothing is written. So a piece of an answer may be shown with the next one.
 * A terminal that takes nothing stops nobody who prints: the text waits (backlog.h).
 *
 * Any thread may call any function. Nothing is shown before live_start and after live_stop. A
 * function that takes the region off the terminal waits until all before is on it.
 */
#pragma once

#include "base/str.h"
#include "tui/line.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	LIVE_ROWS_MAX = 24,
	LIVE_WAITING_MAX = 3, /* texts that wait, of which so many are named */
};

struct footer;
struct live;
struct screen_options;
struct term;
struct theme;

/* LOOK is copied. FD is kept by the caller. */
struct live *live_new(int fd, const struct screen_options *look);
void live_free(struct live *live);

void live_start(struct live *live);
/* Erase the region. What was printed of a line that is not whole is printed for good. */
void live_stop(struct live *live);
bool live_is_on(struct live *live);
/* The colours of what is printed from now on. THEME lives as long as LIVE. */
void live_set_theme(struct live *live, const struct theme *theme);
const struct theme *live_theme(struct live *live);
/* The terminal has told what it is. */
void live_set_terminal(struct live *live, const struct term *term);

/*
 * Print TEXT for good, soon. It is clean, and has only sequences of ours. The part behind its last line
 * end is shown, and printed when its end comes. False with errno: the terminal is gone.
 */
bool live_print(struct live *live, struct str text);

enum live_text {
	LIVE_DRAFT,   /* the line that is not whole yet: it is drawn, and never printed */
	LIVE_STATUS,  /* one row of ours: the work under way */
	LIVE_WORK,    /* rows above it, each with its line end: agents at work, tasks */
	LIVE_WAITING, /* the texts that wait, one in a row, each with what it waits for */
	LIVE_TEXTS,
};

/* Show TEXT as WHICH from now on; "": there is none. */
void live_set(struct live *live, enum live_text which, struct str text);
/*
 * The footer (region/footer.h) below the typed text, from now on; it outlives live_stop. A window
 * that is low has none.
 */
void live_set_footer(struct live *live, const struct footer *footer);
/* Show LINE, which the person is typing. */
void live_set_line(struct live *live, const struct line *line);

/* The rows that the region may have in the present window. */
size_t live_rows(void);
/* Show FRAME, which was composed for the present window, in the place of that line. */
void live_set_frame(struct live *live, const struct line_frame *frame);

/* The terminal has another size. LINE is what the person is typing, or NULL. */
void live_resized(struct live *live, const struct line *line);
/* Another program has used the terminal: draw all of it again. */
void live_redraw(struct live *live);
/* Clear the window, not the scrollback, and print what stood in it, for the present width. */
void live_clear(struct live *live);
/* Wait until the terminal has all that is to be shown. */
void live_settle(struct live *live);
/*
 * Take the region off the terminal while another program has it, and hold back all that is printed
 * (backlog.h), until live_release draws it. A line that is not whole yet stays so. A function that
 * takes the region off waits meanwhile.
 */
void live_hold(struct live *live);
void live_release(struct live *live);
/*
 * Take the region off the terminal, where somebody else is going to print, and put it back;
 * it is there again when as many have put it back as have taken it.
 * Text that is printed meanwhile is printed at once.
 */
void live_hide(struct live *live);
void live_show(struct live *live);
