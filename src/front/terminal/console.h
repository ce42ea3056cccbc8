/*
 * console: the person's terminal during a conversation: lines are typed and edited on it,
 * questions asked, and while something runs keys are kept for later and Escape asks for the
 * end as Ctrl+C does. It is put back as it was on every way out: the end, a signal, a stop
 * (Ctrl+Z), a crash or a kill (terminal_guard.h).
 *
 * On a terminal without cursor movement (TERM=dumb) lines are read as the kernel edits them.
 *
 * One thread uses it. Open it before any other thread is started: the signals of window and
 * job control go to a thread of its own from then on.
 */
#pragma once
#include "base/err.h"
#include "front/terminal/line.h"

#include <stdbool.h>
#include <stddef.h>

struct console;

/* ERR: standard input or output is no terminal. *CONSOLE is NULL then. */
bool console_open(struct console **console, struct err *err);
/* The same where there is one; else *CONSOLE is NULL, and that is no error. */
bool console_open_if_any(struct console **console, struct err *err);
void console_close(struct console *console); /* puts all back; NULL is fine */

enum console_answer {
	CONSOLE_LINE, /* a line was typed; the screen no longer shows it */
	CONSOLE_QUIT, /* the person wants to go */
	CONSOLE_GONE, /* the terminal is gone */
	CONSOLE_WOKEN /* the descriptor became readable */
};

/*
 * Let LINE be edited from what it is until Enter. WAKE_FD (-1: none): return when it is
 * readable; nothing of the line is lost, and it may be read again.
 */
enum console_answer console_read(struct console *console, struct line *line, int wake_fd);

/*
 * Ask: one of CHOICES ("once", "session", "no"; NULL-ended), each chosen by its first letter,
 * the last one also by Enter, Escape, Ctrl+C, Ctrl+D and whatever else ends the asking: the
 * last must be the safe one. QUESTION is one short line of ours; what it is about is shown
 * before. Keys that were typed before the question came are thrown away: they were not meant
 * as an answer. While something runs it may be called as well as between lines.
 *
 * The index of the choice; the question and the answer stay on the screen.
 */
size_t console_choose(struct console *console, const char *question,
		      const char *const *choices, int wake_fd);
