/*
 * console_parts: the inside of a console. console.c has the modes and the thread,
 * console_read.c has reading and drawing.
 */
#pragma once
#include "front/terminal/console.h"

#include <pthread.h>
#include <signal.h>
#include <termios.h>

#include "front/terminal/line.h"
#include "front/terminal/screen.h"
#include "front/terminal/terminal_guard.h"

enum {
	CONSOLE_READ_MAX = 4096, /* a terminal gives no more in one read */
	/*
	 * How long to wait for the rest of an escape sequence, which may come over a
	 * network.
	 */
	CONSOLE_ESCAPE_WAIT_MS = 50,
	CONSOLE_STOPPED = 1 << 16, /* in `news`: the process was stopped and goes on */
};

enum mode {
	MODE_BEFORE,   /* as we found it */
	MODE_TYPING,   /* raw: we read each key */
	MODE_WATCHING, /* the thread keeps the keys; Ctrl+C is a signal */
};

struct console {
	struct screen_options look;
	struct termios before;
	struct terminal_guard guard;
	pthread_mutex_t lock;
	enum mode mode;
	bool interrupted;  /* Escape has interrupted the present run */
	bool marks_pastes; /* the terminal marks pastes (bracketed paste is on) */
	struct typing typing;
	int signals, news, end; /* descriptors; news: draw again; end: of the thread */
	bool started;
	pthread_t thread;
	struct line_frame shown, wanted;
	sigset_t mask_before;
};

/*
 * Write to standard output. Errors are ignored: the next read finds a terminal that is
 * gone.
 */
void console_write(const char *bytes);
void console_set_mode(struct console *console, enum mode mode);
