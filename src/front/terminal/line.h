/*
 * line: the text that a person is typing, which may have several lines, and the effect of
 * keys: moving, deleting, killing and yanking, history, search, completion. Pure: keys go
 * in, a text and a cursor come out. line_frame.h draws the text, console.h reads the
 * keys. The text is always valid UTF-8, and the cursor is never inside a character as a
 * person sees it.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"
#include "front/terminal/line_history.h"
#include "front/terminal/typing.h"

#include <stdbool.h>
#include <stddef.h>

/* The same limit as that of `glovebox run -`; a longer text belongs into a file. */
enum { LINE_BYTES_MAX = 4 << 20 };

/*
 * COMPLETE gets BEFORE, the text up to the cursor. It sets *FROM to the offset in BEFORE
 * at which the word to be completed begins, and appends to WORDS each text that may
 * replace this word, with a line end.
 */
struct line_completer {
	void (*complete)(void *context, struct str before, size_t *from, struct buf *words);
	void *context;
};

struct line_search {
	bool on, failed;
	size_t entry;      /* the entry of the history that is shown */
	struct buf wanted; /* the text that is searched for */
	struct buf before; /* the text from before the search */
};

struct line {
	struct buf text;
	size_t cursor;
	struct buf hint; /* for a row below: candidates, the effect of a key, or "" */
	struct buf killed;
	bool killing;                 /* the last key killed: the next kill joins it */
	bool quitting;                /* the last key was Ctrl+C on an empty line */
	struct line_history *history; /* borrowed; may be NULL */
	size_t entry;     /* in the history, that TEXT began as; the count: none */
	struct buf draft; /* the typed text from before the person went to the history */
	struct line_search search;
	struct line_completer completer; /* complete may be NULL */
};

void line_init(struct line *line, struct line_history *history,
	       struct line_completer completer);
void line_fini(struct line *line);

/* Begin with an empty text at the end of the history. The killed text stays. */
void line_start(struct line *line);

enum line_result {
	LINE_GOES_ON,
	LINE_DONE,     /* Enter: TEXT is finished, and not blank */
	LINE_QUIT,     /* Ctrl+D, or Ctrl+C twice, on an empty line */
	LINE_CLEARED,  /* Ctrl+L: clear the screen, draw again */
	LINE_SUSPENDED /* Ctrl+Z */
};

/* Let LINE handle KEY. TYPED is the text of TYPING_TEXT and TYPING_PASTE. */
enum line_result line_take(struct line *line, enum typing_key key, struct str typed);

/*
 * Insert TYPED at the cursor. When the text would become too long, nothing of TYPED is
 * inserted, and the hint says so.
 */
void line_insert(struct line *line, struct str typed);

/* Set the text to TEXT and the cursor to its end. */
void line_set(struct line *line, struct str text);
