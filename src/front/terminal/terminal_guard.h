/*
 * terminal_guard: a child process that waits for our end and then restores the terminal
 * behind standard input, even when we are killed.
 */
#pragma once
#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

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
