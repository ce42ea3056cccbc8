/*
 * notify: tells a person who looks elsewhere that a turn is over or that a question waits. The
 * words are ours: nothing of a model, a tool or a workspace is in them. Nothing is told while the
 * window has the focus, or while a terminal that tells the focus has told nothing of it.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "tui/term.h"

#include <stdbool.h>
#include <stdint.h>

enum notify_way {
	NOTIFY_AUTO, /* as the terminal can, else by its bell */
	NOTIFY_BELL,
	NOTIFY_OFF,
	NOTIFY_COMMAND, /* a program of the person's gets the words as its last argument */
};
enum {
	NOTIFY_AFTER_MS = 10 * 1000, /* the end of a shorter turn has been waited for */
	NOTIFY_WORDS_MAX = 32,       /* of a command */
};

/* The ways that have a name, with blanks between them. */
#define NOTIFY_NAMES "auto bell off"
bool notify_parse(const char *name, enum notify_way *way); /* false: no way has this name */
const char *notify_name(enum notify_way way);

/* Is TERM's window without focus? */
bool notify_is_due(const struct term *term);
/* Append to OUT what tells TEXT on the terminal TERM; nothing for NOTIFY_OFF and a command. */
void notify_add(enum notify_way way, const struct term *term, const char *text,
		struct buf *out);
/* Start the program WORDS, NULL-ended, with TEXT behind them. It outlives us. */
bool notify_start(const char *const *words, const char *text, struct err *err);
