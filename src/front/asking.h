/*
 * asking: puts the questions of approvals (docs/approvals.md) to the person at the
 * terminal. It is a sink between the record and the screen: the screen shows byte for
 * byte what would be done, then the person chooses on the console. Keys typed before the
 * question do not count. The run stands still until the choice is made.
 */
#pragma once
#include "front/terminal/console.h"
#include "front/terminal/screen.h"
#include "session/session.h"

struct asking;

/*
 * All arguments are borrowed. INTERRUPT_FD becomes readable when a signal asks for the
 * end; an open question is then answered with no. NULL and ERR when the timer of
 * questions cannot be made.
 */
struct asking *asking_open(struct console *console, struct screen *screen,
			   int interrupt_fd, struct err *err);
void asking_close(struct asking *asking); /* NULL is fine */

struct event_sink asking_sink(struct asking *asking);

/*
 * Append to LINE one line in which TOOL itself says what its call would do; it is shown
 * with the question. False: there is none. ASKING NULL is fine.
 */
typedef bool asking_preview(void *context, const char *tool,
			    const struct value *arguments, struct buf *line);
void asking_set_preview(struct asking *asking, asking_preview *preview, void *context);

/* Answer the questions of the calls of SESSION from now on. ASKING NULL is fine. */
void asking_set_session(struct asking *asking, struct session *session);
