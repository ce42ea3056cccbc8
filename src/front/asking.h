/*
 * asking: the questions of approvals (docs/approvals.md), put to the person at the terminal. A sink
 * between the record and the screen: the screen shows what would be done, byte for byte, and the
 * choice is made on the console, where nothing typed before counts. While it is being made the run
 * stands still.
 */
#pragma once
#include "front/terminal/console.h"
#include "front/terminal/screen.h"
#include "session/session.h"

struct asking;

/*
 * All borrowed. INTERRUPT_FD: readable when a signal asks for the end, which is a no. NULL and ERR when
 * the time of a question cannot be kept.
 */
struct asking *asking_open(struct console *console, struct screen *screen,
			   int interrupt_fd, struct err *err);
void asking_close(struct asking *asking); /* NULL is fine */

struct event_sink asking_sink(struct asking *asking);

/*
 * What else is shown of a question about a call of TOOL: one line of the tool's own, in LINE; false:
 * none. ASKING NULL is fine.
 */
typedef bool asking_preview(void *context, const char *tool,
			    const struct value *arguments, struct buf *line);
void asking_set_preview(struct asking *asking, asking_preview *preview, void *context);

/* Whose calls are answered from now on. ASKING NULL is fine. */
void asking_set_session(struct asking *asking, struct session *session);
