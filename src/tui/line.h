/*
 * line: the text that a person is typing, which may have several lines, and the effect of
 * keys: moving, deleting, killing and yanking, history, search, completion. Pure: keys go
 * in, a text and a cursor come out. console.h reads the keys. The text is always valid UTF-8,
 * and the cursor is never inside a character as a person sees it. A long paste and a picture
 * stand in the text as one character (edit/insets.h).
 *
 * The line is edited by our own code. readline is GPL, libedit knows neither bracketed
 * paste nor a text of several rows, both own the terminal and its signals, and neither
 * could be played byte by byte in a test. This module is pure up to the descriptor, so
 * keys are fuzzed, and it costs no start. A new key is a row in keys.[ch], its effect in
 * line.c and a row in tests/unit/tui/line_test.c.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "tui/choose/menu.h"
#include "tui/edit/changes.h"
#include "tui/edit/insets.h"
#include "tui/term.h"
#include "tui/typing.h"

#include <stdbool.h>
#include <stddef.h>

struct keys;
struct line_history;
struct paint;
struct theme;

/*
 * The texts that the person typed before, oldest first, in memory and in a file of the
 * user's state (0600). Both are bounded. One entry is one line of the file, with "\\"
 * for a backslash and "\n" for a line end. Lines that are not UTF-8 or hold other
 * control bytes are left out when the file is read. Several programs may append to one
 * file.
 *
 * Not kept: a text that begins with a blank (so a person keeps it out), a text that
 * equals the newest entry, and a text that is too long for an entry.
 */

enum {
	LINE_HISTORY_ENTRIES = 1000,
	LINE_HISTORY_ENTRY_MAX = 16 << 10,
	LINE_HISTORY_FILE_MAX = 1 << 20, /* the file is cut to its newer half beyond this */
};

struct line_history *line_history_new(void);          /* only in memory */
void line_history_free(struct line_history *history); /* NULL is fine */

/*
 * Read the file PATH, and append to it from now on. The file and its folders are made
 * when they do not exist. On failure (ERR) the history stays in memory only.
 */
bool line_history_open(struct line_history *history, const char *path, struct err *err);

/* Add the entries of TEXT, which has the form of the file. */
void line_history_parse(struct line_history *history, struct str text);

size_t line_history_count(const struct line_history *history); /* NULL: 0 */
/* The entry AT; valid until the next entry is added. */
struct str line_history_item(const struct line_history *history, size_t at);

/*
 * Add TEXT as the newest entry. When writing the file fails, the entry is still in
 * memory.
 */
void line_history_add(struct line_history *history, struct str text);

/* The same limit as that of `glovebox run -`; a longer text belongs into a file. */
enum { LINE_BYTES_MAX = 4 << 20 };

/*
 * COMPLETE gets BEFORE, the text up to the cursor. It sets *FROM to the offset in BEFORE
 * at which the word to be completed begins, and appends to WORDS each text that may
 * replace this word, the best first, with a line end; a tab and a description may stand before
 * the line end. The words are shown in a menu as soon as there are any. HINT (may be NULL)
 * appends to OUT the form of the argument that may follow BEFORE.
 */
struct line_completer {
	void (*complete)(void *context, struct str before, size_t *from, struct buf *words);
	void (*hint)(void *context, struct str before, struct buf *out);
	void *context;
};

/*
 * PICTURES returns the pictures in the files whose PATHS were pasted or, without any (""), the
 * one in the clipboard: an array of what tool/picture.h makes, which the line owns. BEFORE are
 * the pictures that the text has already, or NULL. NULL with a reason in ERR: they cannot be
 * taken. NULL without one: PATHS is any text.
 */
struct line_camera {
	struct value *(*pictures)(void *context, struct str paths,
				  const struct value *before, struct err *err);
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
	struct menu menu;
	struct line_camera camera; /* pictures is NULL after line_init */
	struct buf pasted;         /* what has come of a paste */
	struct insets insets;
	struct changes changes;
	const struct keys *keys; /* borrowed, for hints; NULL, as after line_init: the defaults */
	enum typing_key last; /* the key before; TYPING_NONE: its effect does not matter now */
};

void line_init(struct line *line, struct line_history *history,
	       struct line_completer completer);
void line_fini(struct line *line);

/* Begin with an empty text at the end of the history. The killed text stays. */
void line_start(struct line *line);

/* Append the text as it is sent, with all that was pasted. */
void line_add_whole(const struct line *line, struct buf *out);
/* The pictures in the text; NULL: there is none. The caller frees the array. */
struct value *line_pictures(const struct line *line);

enum line_result {
	LINE_GOES_ON,
	LINE_DONE,      /* Enter: TEXT is finished, and not blank */
	LINE_QUIT,      /* Ctrl+D, or Ctrl+C twice, on an empty line */
	LINE_CLEARED,   /* clear the screen, draw again */
	LINE_SUSPENDED, /* stop the job */
	/* The caller does it; the text stays. */
	LINE_EDITOR, /* let the person edit the text in their own editor */
	LINE_REWIND, /* let the person choose an earlier prompt; the text is empty */
	LINE_VIEWER, /* show all that was said */
	LINE_TASKS,  /* show the tasks */
	LINE_MODE,   /* go on with the next mode */
};

/* Let LINE handle KEY. TYPED is the text of TYPING_TEXT and TYPING_PASTE. */
enum line_result line_take(struct line *line, enum typing_key key, struct str typed);

/*
 * Insert TYPED at the cursor, as a step of its own for undo. When the text would become too
 * long, nothing of TYPED is inserted, and the hint says so.
 */
void line_insert(struct line *line, struct str typed);
/* Insert TEXT, whose insets are those of INSETS. */
void line_insert_with(struct line *line, const struct insets *insets, struct str text);
/* Replace the text by TYPED, in which the labels of its pictures stand for them. */
void line_replace(struct line *line, struct str typed);
/* Show SENTENCE below the text until the next key. */
void line_set_hint(struct line *line, const char *sentence);
/* The same for a sentence of ours with keys in it (keys_say). */
void line_say_hint(struct line *line, const char *sentence);

/* The words may be others now: show them where the cursor stands at a word. */
void line_offer(struct line *line);

/* Go back to the text that the person has typed, from a search or from the history. */
void line_to_draft(struct line *line);

/*
 * The rows that show a text which is being typed, and the bytes that change a screen
 * from one set of rows to another. Rows are broken here, never by the terminal, and only
 * changed rows are written again. Pure.
 *
 * Sequences: ECMA-48 CUU, CUD, CHA, EL, ED; SGR when there is colour.
 */

/* How the rows of a line, its menu, a list or a question are painted. */
struct line_look {
	size_t columns, rows; /* of the terminal, or those that there is room for */
	bool colour, unicode;
	const struct theme *theme; /* borrowed; NULL: `dark` in sixteen colours */
	const struct keys *keys;   /* borrowed, for hints; NULL: the defaults */
};

/* Begin PAINT, which the caller ends by paint_fini, with what LOOK says of colours and characters. */
void line_look_paint(const struct line_look *look, struct paint *paint);

struct line_frame {
	struct buf rows;    /* each with its line end */
	size_t row, column; /* of the cursor; from 0 */
};

void line_frame_init(struct line_frame *frame);
void line_frame_fini(struct line_frame *frame);

/*
 * Compose the rows of LINE, with a prompt before them. Of a text with more rows than the
 * terminal, compose the rows around the cursor. U+FFFD replaces characters that would
 * change the rest of the row.
 */
void line_frame_compose(struct line_frame *frame, const struct line *line,
			const struct line_look *look);

/*
 * Append to OUT the bytes that change SHOWN into WANTED. The terminal's cursor stands at
 * that of SHOWN.
 */
void line_frame_change(const struct line_frame *shown, const struct line_frame *wanted,
		       struct buf *out);

/*
 * Append to OUT the bytes that erase SHOWN. The terminal may have had another width when the
 * rows were written: it has COLUMNS now, and REFLOW says what has become of longer rows. Afterwards
 * the cursor stands where the first row began.
 */
void line_frame_erase(const struct line_frame *shown, size_t columns,
		      enum term_reflow reflow, struct buf *out);
