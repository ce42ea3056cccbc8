/*
 * line: the text that is being typed, which may have several lines, and what keys do to it:
 * moving, deleting, killing and yanking, history, search, completion. Pure: keys in, a text
 * and a cursor out; line_frame.h draws it, console.h gives it a terminal. The text is always
 * valid UTF-8 and the cursor never inside what a person sees as one character.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"
#include "front/terminal/line_history.h"
#include "front/terminal/typing.h"

#include <stdbool.h>
#include <stddef.h>

/* As much as `glovebox run -` takes; what is longer is a file. */
enum { LINE_BYTES_MAX = 4 << 20 };

/*
 * Append to WORDS, each with a line end, what may stand in the place of the end of BEFORE (the
 * text up to the cursor), and set *FROM to where in BEFORE that place begins.
 */
struct line_completer {
	void (*complete)(void *context, struct str before, size_t *from, struct buf *words);
	void *context;
};

struct line_search {
	bool on, failed;
	size_t entry;      /* of the history, that is shown */
	struct buf wanted; /* what is looked for */
	struct buf before; /* the text as it was */
};

struct line {
	struct buf text;
	size_t cursor;
	struct buf hint; /* for a row below: candidates, what a key would do; "" mostly */
	struct buf killed;
	bool killing;                 /* the last key killed: the next kill joins it */
	bool quitting;                /* the last key was Ctrl+C on an empty line */
	struct line_history *history; /* borrowed; may be NULL */
	size_t entry;     /* of the history, that TEXT began as; its count: none */
	struct buf draft; /* what was typed before the history was gone through */
	struct line_search search;
	struct line_completer completer; /* complete may be NULL */
};

void line_init(struct line *line, struct line_history *history,
	       struct line_completer completer);
void line_fini(struct line *line);

/* An empty text at the end of the history; killed text stays. */
void line_start(struct line *line);

enum line_result {
	LINE_GOES_ON,
	LINE_DONE,     /* Enter: TEXT is what was meant; it is not blank */
	LINE_QUIT,     /* Ctrl+D, or Ctrl+C twice, on an empty line */
	LINE_CLEARED,  /* Ctrl+L: clear the screen, draw again */
	LINE_SUSPENDED /* Ctrl+Z */
};

/* TYPED: the text of KEY_TEXT and KEY_PASTE. */
enum line_result line_take(struct line *line, enum key key, struct str typed);

/* Put TYPED in at the cursor. Too much is left out whole, and the hint says so. */
void line_insert(struct line *line, struct str typed);

/* The text is TEXT, the cursor at its end. */
void line_set(struct line *line, struct str text);
