/*
 * screen: the plain screen of a conversation: a consumer of events that writes to one
 * descriptor, append-only. Words of the model as they stream, each call as a headed
 * block, the change as a diff, a closing line. What came from a model or a tool is made
 * safe for a terminal. Prose is broken between words on a terminal alone (screen_wrap.h), and so is
 * what tools say, behind the bar of its block (fold.h); code, commands, paths and the diff never,
 * so that copying gives what was said.
 */
#pragma once
#include "tool/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct screen;

/* What the descriptor can show. */
struct screen_options {
	bool terminal; /* a spinner may be drawn and cleared */
	bool colour;
	bool unicode; /* else boxes and marks are ASCII */
	/* 0: ask the descriptor before each use, SCREEN_COLUMNS when it has none */
	size_t columns;
};
enum { SCREEN_COLUMNS = 80, SCREEN_COLUMNS_MIN = 20, SCREEN_COLUMNS_MAX = 10000 };

/*
 * From the descriptor and the environment: NO_COLOR, TERM=dumb, no terminal: plain, but
 * CLICOLOR_FORCE and FORCE_COLOR ask for colours even there (NO_COLOR beats them);
 * LC_ALL, LC_CTYPE, LANG: ASCII unless UTF-8; COLUMNS where there is no terminal.
 */
struct screen_options screen_options_of(int fd);

/* Columns of the terminal FD, SIZE_MAX when it is none or does not say. */
size_t screen_columns_of(int fd);

/* OPTIONS NULL: screen_options_of(fd). FD stays the caller's. */
struct screen *screen_new(int fd, const struct screen_options *options);
void screen_free(struct screen *screen); /* clears the spinner; NULL is fine */
struct event_sink screen_sink(struct screen *screen);
int screen_gone(const struct screen *screen); /* why nobody looks, as an errno; 0: one may */

/*
 * Nothing is under way any more: the spinner stops, and what follows begins on a line of its
 * own. The end of a turn does so by itself.
 */
void screen_rest(struct screen *screen);

/* Between turns somebody else writes: a blank line, and the next item does without one. */
void screen_break(struct screen *screen);
