/*
 * terminal: the caller's terminal while a program of `exec --tty` has one of its own: raw,
 * so that every key goes to the program, and put back on every way out, a kill included.
 * Its descriptor stays here.
 */
#pragma once
#include "base/err.h"
#include "process/loop.h"
#include "process/pty.h"

#include <stdbool.h>

struct terminal;

/*
 * Before any thread: the signals of window and job control wait from now on for
 * terminal_open.
 */
void terminal_prepare(void);

/*
 * Make the terminal behind standard input raw, when it is one. New sizes are sent to SOCKET
 * (packets of process/pty.h) from LOOP's turns.
 */
bool terminal_open(struct loop *loop, int socket, struct terminal **terminal,
		   struct err *err);
void terminal_close(struct terminal *terminal); /* put it back; NULL is fine */

/* The size of the terminal behind 0, 1 or 2, else that of an old one. */
struct pty_size terminal_size(void);
