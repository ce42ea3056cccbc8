/*
 * screen: the plain screen of a conversation: a consumer of events that writes to one
 * descriptor, append-only. It shows the words of the model as they stream, each call as a
 * block with a head, the change as a diff, and a closing line. Text from a model or a
 * tool is made safe for a terminal. On a terminal, prose is broken between words
 * (screen_wrap.h), and so is the text of tools, behind the bar of its block (fold.h).
 * Code, commands, paths and diffs are never broken, so that a copy from the screen is
 * exact.
 */
#pragma once
#include "tool/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct screen;

/* The abilities of the descriptor. */
struct screen_options {
	bool terminal; /* a spinner may be drawn and cleared */
	bool colour;
	bool unicode; /* false: boxes and marks are ASCII */
	/* 0: ask the descriptor before each use; SCREEN_COLUMNS when it does not say */
	size_t columns;
};
enum { SCREEN_COLUMNS = 80, SCREEN_COLUMNS_MIN = 20, SCREEN_COLUMNS_MAX = 10000 };

/*
 * Find the options from the descriptor FD and the environment. NO_COLOR, TERM=dumb or no
 * terminal mean no colours, but CLICOLOR_FORCE and FORCE_COLOR turn colours on (NO_COLOR
 * beats them). LC_ALL, LC_CTYPE and LANG mean ASCII unless they name UTF-8. COLUMNS is
 * used where there is no terminal.
 */
struct screen_options screen_options_of(int fd);

/* Columns of the terminal FD; SIZE_MAX when FD is no terminal or does not say. */
size_t screen_columns_of(int fd);

/* OPTIONS NULL: screen_options_of(fd). The caller keeps FD. */
struct screen *screen_new(int fd, const struct screen_options *options);
void screen_free(struct screen *screen); /* clears the spinner; NULL is fine */
struct event_sink screen_sink(struct screen *screen);
int screen_gone(const struct screen *screen); /* errno of a failed write, or 0 */

/*
 * Tell the screen that nothing is under way any more: the spinner stops, and the next
 * output begins on its own line. The end of a turn does the same.
 */
void screen_rest(struct screen *screen);

/*
 * Another module is going to write between turns: print a blank line now, and none before
 * the next item.
 */
void screen_break(struct screen *screen);
