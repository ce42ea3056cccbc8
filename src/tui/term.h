/*
 * term: what is known about the person's terminal: from the environment, and from its answers to
 * questions that are written once at the start. Nobody waits for the answers: what depends on them
 * changes when they come. They come among the keys, torn where a network tears them, and typing.h
 * takes them out of what is typed. Pure: no descriptor, no clock.
 *
 * The questions, each of which a terminal that does not know it passes over: XTVERSION (xterm's
 * ctlseqs, "CSI > q"), the ground (OSC 11), DECRQM of modes 1004, 2026 and 2027 ("CSI ? Ps $ p"), the
 * keyboard protocol of kitty ("CSI ? u"), and DA1 ("CSI c"), which every terminal answers, and
 * answers last.
 */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum { TERM_NAME_MAX = 64 };

enum term_ground { TERM_GROUND_UNKNOWN, TERM_GROUND_DARK, TERM_GROUND_LIGHT };
enum term_focus { TERM_FOCUS_UNKNOWN, TERM_FOCUSED, TERM_UNFOCUSED };

/* How a terminal tells the person something while its window is not looked at. */
enum term_notice {
	TERM_NOTICE_BELL,
	TERM_NOTICE_9,   /* OSC 9 ; TEXT */
	TERM_NOTICE_99,  /* OSC 99 ; ; TEXT, of kitty */
	TERM_NOTICE_777, /* OSC 777 ; notify ; TITLE ; TEXT, of rxvt */
};

/*
 * Long rows when the window has another width. In doubt the smaller one holds: with
 * too few rows erased a ghost of ours stays, with too many something that was printed goes.
 */
enum term_reflow {
	TERM_CUTS, /* each stays one row */
	/* they are broken anew, but for the row of the cursor: xterm.js leaves it to the program */
	TERM_REFLOWS_OTHERS,
	/* all are; but tmux 3.3a takes the cursor out of a row that has nothing but blanks */
	TERM_REFLOWS_BUT_BLANK,
	TERM_REFLOWS, /* all are broken anew */
};

struct term {
	enum term_reflow reflow;
	/*
	 * It makes links of texts (OSC 8). Most terminals pass over what they do not know, but
	 * a multiplexer may eat the text: such a one, and an unknown one, count as one without.
	 */
	bool links;
	bool has_frames; /* mode 2026: what stands between its sequences appears together */
	bool joins; /* mode 2027 is on: a cluster takes the columns that Unicode gives it */
	bool has_keyboard; /* knows the keyboard protocol of kitty */
	bool has_focus;    /* tells when its window gets and loses the focus */
	bool answered;     /* all answers have come */
	enum term_ground ground;
	enum term_focus focus;
	enum term_notice notice;
	char name[TERM_NAME_MAX]; /* as the terminal calls itself, printable; "": unknown */
};

/* All that the environment says. */
void term_init(struct term *term);
/* May this terminal be asked? Not the Linux console, which shows a part of the questions. */
bool term_may_ask(void);
extern const char term_questions[];

/*
 * Are BYTES, which begin with Escape, an answer or the news of the focus? *SIZE: of the answer.
 * TERM_MAYBE: what comes next decides, and they may be a key. TERM_TORN: no key begins like this.
 * An answer that has no end is taken up to where it cannot go on.
 */
enum term_match { TERM_KEY, TERM_MAYBE, TERM_TORN, TERM_ANSWER };
enum term_match term_match(struct str bytes, size_t *size);

/* Learn from ANSWER, as term_match found it. */
void term_take(struct term *term, struct str answer);
