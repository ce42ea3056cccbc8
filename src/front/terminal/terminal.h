/*
 * terminal: the caller's terminal while a program of `exec --tty` has a terminal of its
 * own. The caller's is raw, so that every key goes to the program, and its settings are
 * restored on every way out, a kill included. The program never gets its descriptor.
 */
#pragma once
#include "base/err.h"
#include "process/loop.h"
#include "process/pty.h"

#include <stdbool.h>

struct terminal;

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
void terminal_close(struct terminal *terminal); /* restores the settings; NULL is fine */

/*
 * The size of the terminal behind descriptor 0, 1 or 2; without one, the size of an old
 * terminal.
 */
struct pty_size terminal_size(void);
