/*
 * terminal_guard: a process of its own that waits for our end and then puts the terminal
 * behind standard input back: whatever ends us, a kill included.
 */
#pragma once
#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct terminal_guard {
	pid_t pid; /* 0: there is none */
	int news;  /* the pipe to it: a byte or its end is the news */
};

/*
 * When we are gone without terminal_guard_end, the settings BEFORE are set and RESET (short, our
 * own sequences) is written. Before there are threads.
 */
bool terminal_guard_start(struct terminal_guard *guard, const struct termios *before,
			  const char *reset, struct err *err);

/* All has been put back: the guard goes. A guard that is zero is fine. */
void terminal_guard_end(struct terminal_guard *guard);
