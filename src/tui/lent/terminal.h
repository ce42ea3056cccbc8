/*
 * terminal: the settings, the signals and the size of the person's terminal, and the guard that restores
 * it. A conversation uses it by console.h; this is the terminal of `exec --tty`, whose program has one of
 * its own: the caller's is raw then, so that every key goes to the program, and its settings are restored
 * on every way out, a kill included. The program never gets its descriptor.
 */
#pragma once

#include "base/err.h"
#include "process/loop.h"
#include "process/pty.h"

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct terminal;

/* Longer than a terminal takes to answer, also over a network. */
enum { TERMINAL_ANSWERS_MS = 50 };

/*
 * A forked process that waits for our end, seen as the end of a pipe, and then restores
 * the terminal behind standard input, even when we are killed.
 */
struct terminal_guard {
	pid_t pid; /* 0: there is none */
	int news;  /* our end of a pipe: closed without a byte, the guard restores */
};

/*
 * Start the guard. If we end without terminal_guard_end, it sets the settings BEFORE and
 * writes RESET (short, our own sequences). Call it before any thread is started.
 */
bool terminal_guard_start(struct terminal_guard *guard, const struct termios *before,
			  const char *reset, struct err *err);
/* The terminal is restored: end the guard. A zeroed GUARD is fine. */
void terminal_guard_end(struct terminal_guard *guard);

/*
 * Block the signals of window and job control, which then wait for terminal_open. Call it
 * before any thread is started.
 */
void terminal_prepare(void);

/*
 * Make the terminal behind standard input raw, when standard input is a terminal. Each
 * new size is sent to SOCKET (packets of process/pty.h) in the turns of LOOP.
 */
bool terminal_open(struct loop *loop, int socket, struct terminal **terminal,
		   struct err *err);
/*
 * A program outside of every cell has the terminal itself, which stays as it is. When this
 * process is killed and takes the program along, the terminal is restored.
 */
bool terminal_lend(struct terminal **terminal, struct err *err);
/*
 * Make the program draw its whole screen again: its terminal becomes one row smaller for a
 * moment.
 */
void terminal_redraw(struct terminal *terminal);
void terminal_close(struct terminal *terminal); /* restores the settings; NULL is fine */

/*
 * The size of the terminal behind descriptor 0, 1 or 2; without one, the size of an old
 * terminal.
 */
struct pty_size terminal_size(void);
