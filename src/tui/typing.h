/*
 * typing: turns the bytes that a terminal sends, in pieces of any size, into keys and texts. It
 * knows UTF-8, the sequences that xterm and similar terminals send for keys, and
 * bracketed paste. Pasted bytes are always text, never keys. Answers of the terminal come out
 * as such, torn or not, and never as text. Pure: no descriptor, no
 * clock.
 *
 * Sequences: ECMA-48 section 5.4 (CSI), xterm's ctlseqs for keys and modifiers ("CSI 1 ;
 * 5 C" is Ctrl+Right), "CSI 200 ~" and "CSI 201 ~" around a paste, "CSI 13 ; 2 u" for
 * Shift+Enter.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum typing_key {
	TYPING_NONE, /* a key without a meaning here */
	TYPING_TEXT, /* typed: characters, valid UTF-8 without control bytes */
	TYPING_PASTE, /* pasted: valid UTF-8, line ends as "\n", tabs; other control bytes as U+FFFD */
	TYPING_ENTER,
	TYPING_NEW_LINE, /* Alt+Enter, or Shift+Enter where the terminal has a code for it */
	TYPING_TAB,
	TYPING_BACKSPACE,
	TYPING_DELETE,
	TYPING_LEFT,
	TYPING_RIGHT,
	TYPING_UP,
	TYPING_DOWN,
	TYPING_HOME,
	TYPING_END,
	TYPING_WORD_LEFT,
	TYPING_WORD_RIGHT,
	TYPING_KILL_TO_START,
	TYPING_KILL_TO_END,
	TYPING_KILL_WORD_LEFT, /* back to a blank: Ctrl+W */
	TYPING_KILL_NAME_LEFT, /* back to the start of a name: Alt+Backspace */
	TYPING_KILL_WORD_RIGHT,
	TYPING_YANK,
	TYPING_SWAP,      /* the two characters at the cursor: Ctrl+T */
	TYPING_CLEAR,     /* the screen: Ctrl+L */
	TYPING_SEARCH,    /* back in the history: Ctrl+R */
	TYPING_SEARCH_ON, /* forward again: Ctrl+S */
	TYPING_CANCEL,    /* Ctrl+G */
	TYPING_INTERRUPT, /* Ctrl+C */
	TYPING_EOF,       /* Ctrl+D */
	TYPING_SUSPEND,   /* Ctrl+Z */
	TYPING_TAKE_BACK, /* what was sent and nobody has taken: Alt+Up */
	TYPING_ESCAPE,
	TYPING_ANSWER, /* no key: an answer of the terminal (term.h), which is the text */
};

/* Most bytes that wait to be read; a terminal gives 4 KiB in one read. */
enum { TYPING_MAX = 64 << 10 };

struct typing {
	struct buf held; /* the bytes that have come */
	size_t at;       /* so many of them are read */
	bool settled;    /* no more bytes follow for a while: do not wait for them */
	/*
	 * The last key was an Escape, or an Escape and this character, because nothing followed
	 * for a while; the rest of an answer that was torn there may still come
	 */
	enum { TYPING_WHOLE, TYPING_GAVE_UP_ESCAPE, TYPING_GAVE_UP_TWO } gave_up;
	char gave_up_character;
	bool pasting;
	bool after_return; /* within a paste: a "\n" now belongs to the "\r" before */
};

void typing_init(struct typing *typing);
void typing_fini(struct typing *typing);

/* Add BYTES. False, and none is added, when too many bytes wait to be read. */
bool typing_add(struct typing *typing, struct str bytes);

/*
 * Take the next key; the text of TYPING_TEXT, TYPING_PASTE and TYPING_ANSWER is appended to TEXT. False when
 * no complete key is left.
 */
bool typing_next(struct typing *typing, enum typing_key *key, struct buf *text);

/*
 * Do the held bytes need more bytes to be understood (an Escape, the beginning of a
 * character, a paste without its end)? When none come for a moment, call typing_settle:
 * the held bytes then count as the key Escape, a bad character or a finished paste. Bytes
 * that begin an answer of the terminal and no key wait for its end without that.
 */
bool typing_waits(const struct typing *typing);
void typing_settle(struct typing *typing);

/* Forget all bytes that have come. */
void typing_clear(struct typing *typing);
