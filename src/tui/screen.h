/*
 * screen: the plain screen of a conversation: a consumer of events that writes to one
 * descriptor, append-only. It shows the words of the model as they stream, each call as a
 * block with a head (on a terminal as a line, see commit/calls.h), the change as a diff, and a
 * closing line. Text from a model or a
 * tool is made safe for a terminal. On a terminal, the words of a model are shown as the Markdown
 * that they are (commit/markdown.h), and their thinking is a line that says how long it took;
 * prose is broken between words (paint.h), and so is the text of tools, behind the bar of its
 * block. Code, commands, paths and diffs are never broken, so that a copy from the screen is exact.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"
#include "tool/event.h"
#include "tui/paint.h"
#include "tui/term.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live;
struct keys;
struct screen;

/* The abilities of the descriptor. */
struct screen_options {
	bool terminal; /* a spinner may be drawn and cleared */
	/*
	 * For one who listens: whole lines, without spinner, boxes and marks. It is no `terminal`
	 * then.
	 */
	bool reader;
	bool colour;
	bool unicode; /* false: boxes and marks are ASCII */
	bool links;   /* it is known to make links of texts with an address (OSC 8) */
	/* of a conversation, whose commands the person has as well; borrowed; or NULL */
	const struct keys *keys;
	bool full;     /* show everything whole: prompts, commands, results, changes */
	bool thinking; /* show the model's thinking, and not only how long it took */
	enum term_reflow reflow;
	const struct theme *theme; /* borrowed; NULL: `dark` in sixteen colours */
	/* 0: ask the descriptor before each use; SCREEN_COLUMNS when it does not say */
	size_t columns;
};

/*
 * Find the options from the descriptor FD and the environment. NO_COLOR, TERM=dumb or no
 * terminal mean no colours, but CLICOLOR_FORCE and FORCE_COLOR turn colours on (NO_COLOR
 * beats them). LC_ALL, LC_CTYPE and LANG mean ASCII unless they name UTF-8. COLUMNS is
 * used where there is no terminal. GLOVEBOX_READER, ACCESSIBLE and TERM=dumb mean a reader.
 * The way a terminal treats long rows, and whether it makes links, is known by TERM, TERM_PROGRAM, or
 * a variable of its own.
 */
struct screen_options screen_options_of(int fd);
enum { SCREEN_DIFF_MAX = 80 << 20 }; /* room for the largest diff that is shown */
/*
 * Append HEAD and DIFF as the terminal of standard output shows a change: cleaned, and with
 * colours where it has them.
 */
void screen_add_diff(struct str head, struct str diff, struct buf *out);

/* OPTIONS NULL: screen_options_of(fd). The caller keeps FD. */
struct screen *screen_new(int fd, const struct screen_options *options);
/* Print above the rows of LIVE (borrowed), and show there what is under way. */
void screen_set_live(struct screen *screen, struct live *live);
void screen_free(struct screen *screen); /* clears the spinner; NULL is fine */
struct event_sink screen_sink(struct screen *screen);
int screen_gone(const struct screen *screen); /* errno of a failed write, or 0 */

/*
 * Tell the screen that nothing is under way any more: the spinner stops, and the next
 * output begins on its own line. The end of a turn does the same.
 */
void screen_rest(struct screen *screen);

/*
 * Any thread, while something runs: show more of what a running call prints, half the window, or
 * less again. Returns whether it is more now.
 */
bool screen_toggle_tail(struct screen *screen);
/* The same for the agent's tasks: *ALL of them, or their number. Returns how many there are. */
size_t screen_toggle_tasks(struct screen *screen, bool *all);

/* Any thread: append a row for each delegate at work. */
void screen_print_agents(struct screen *screen, struct buf *rows);
/* Any thread: append the id of the call for which the delegate NAME works. False: none does. */
bool screen_find_agent(struct screen *screen, struct str name, struct buf *call);

/*
 * TEXT stands on the terminal as the person has typed it: a turn that begins with it does not print
 * it again. "": none does.
 */
void screen_note_typed(struct screen *screen, struct str text);

/*
 * Another module is going to write between turns: print a blank line now, and none before
 * the next item.
 */
void screen_break(struct screen *screen);

/*
 * Turns a model's words, which come in fragments of any size, into text that is safe on
 * a terminal. The end of a fragment is held back while it may be the beginning of a
 * character or of an escape sequence. Nothing is held for ever.
 */

struct screen_flow {
	struct buf held;
};

void screen_flow_init(struct screen_flow *flow);
void screen_flow_fini(struct screen_flow *flow);

/* Add FRAGMENT, and append to OUT all text that can be shown now. */
void screen_flow_add(struct screen_flow *flow, struct str fragment, struct buf *out);
/* The stream has ended: append the rest to OUT. */
void screen_flow_end(struct screen_flow *flow, struct buf *out);

/* The calls under way, with the arguments that their blocks will show. */

struct screen_call {
	char *id, *tool;
	struct value *arguments;
	int64_t began_ms;
	struct screen_call *next;
};

/*
 * Add the call of an EVENT_TOOL_BEGAN to CALLS (NULL: an empty list). ASKED: the
 * arguments as the model wrote them; NULL: take those of the event.
 */
void screen_calls_add(struct screen_call **calls, const struct event *event,
		      const struct value *asked);

/* Take the call ID out of CALLS; the caller owns it. NULL: CALLS has no such call. */
struct screen_call *screen_calls_take(struct screen_call **calls, const char *id);
void screen_call_free(struct screen_call *call);

/*
 * The words, the calls and the end of a delegate, as blocks inside one block of the
 * delegate. When several delegates work at the same time, each block names its delegate.
 */

struct screen_child {
	char *session;       /* the delegate's session, whose block is open; NULL: none */
	struct value *asked; /* session -> call -> arguments, until the call ends */
};

void screen_child_fini(struct screen_child *child);
/*
 * Compose DATA in PAINT. False: nothing was composed. Before a block begins, STAND_OFF is
 * called: it ends the line and leaves a blank one.
 */
void screen_child_paint(struct screen_child *child, struct paint *paint,
			const struct value *data, void (*stand_off)(void *context),
			void *context);
