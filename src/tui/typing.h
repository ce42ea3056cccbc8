/*
 * typing: turns the bytes that a terminal sends, in pieces of any size, into actions and
 * texts. It knows UTF-8, the sequences that terminals send for keys, and bracketed paste;
 * keys.h says what each key does. Pasted bytes are always text, never keys. Answers of the
 * terminal come out as such, torn or not, and never as text. Pure: no descriptor, no clock.
 *
 * Sequences: ECMA-48 section 5.4 (CSI), xterm's ctlseqs for keys and modifiers ("CSI 1 ;
 * 5 C" is Ctrl+Right), its modifyOtherKeys ("CSI 27 ; 2 ; 13 ~" is Shift+Enter), kitty's
 * keyboard protocol with flags 1 ("CSI 13 ; 2 u"), and "CSI 200 ~" and "CSI 201 ~" around a
 * paste.
 *
 * A terminal that does not mark a paste sends its line ends as Enter. So a line end among
 * text that came in one piece is a new line, and so are those that follow without a pause.
 * This does not hold for what was typed before the terminal was raw.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "tui/keys.h"

#include <stdbool.h>
#include <stddef.h>

/* Most bytes that wait to be read; a terminal gives 4 KiB in one read. */
enum { TYPING_MAX = 64 << 10 };
/*
 * A paste of more bytes is too long for any text. When its end never comes, a person gets out of
 * it by Ctrl+C, which is a character of the paste before.
 */
enum { TYPING_PASTE_MAX = 8 << 20 };

enum {
	TYPING_SOON_MS = 5, /* nobody types two keys within it */
	/* The rest of an escape sequence may come over a network. */
	TYPING_SEQUENCE_MS = 50,
	TYPING_PASTE_MS = 5000, /* after this pause, the end of a paste is lost */
};

struct typing {
	struct keys keys;
	struct buf held; /* the bytes that have come */
	size_t at;       /* so many of them are read */
	size_t early;    /* so many of them came before the terminal was raw */
	bool settled;    /* no more bytes follow for a while: do not wait for them */
	/*
	 * The last key was an Escape, or an Escape and this character, because nothing followed
	 * for a while; the rest of an answer that was torn there may still come
	 */
	enum { TYPING_WHOLE, TYPING_GAVE_UP_ESCAPE, TYPING_GAVE_UP_TWO } gave_up;
	char gave_up_character;
	bool marks;      /* the terminal has marked a paste: it marks all of them */
	bool after_text; /* the key before was text, and came in one piece with the next */
	bool burst;      /* in a paste without marks: a line end is a new line */
	bool pasting;
	size_t pasted;     /* bytes of the paste so far */
	bool after_return; /* within a paste: a "\n" now belongs to the "\r" before */
};

void typing_init(struct typing *typing);
void typing_fini(struct typing *typing);

/* Add BYTES. False, and none is added, when too many bytes wait to be read. */
bool typing_add(struct typing *typing, struct str bytes);
/* The same for bytes that were typed before the terminal was raw: each line end is Enter. */
bool typing_add_early(struct typing *typing, struct str bytes);

/*
 * Take the next key; the text of TYPING_TEXT, TYPING_PASTE and TYPING_ANSWER is appended to TEXT. False when
 * no complete key is left.
 */
bool typing_next(struct typing *typing, enum typing_key *key, struct buf *text);

/*
 * Do the held bytes need more bytes to be understood (an Escape, the beginning of a
 * character, a paste without its end, a line end that may belong to one)? When none come for
 * typing_patience_ms, call typing_settle: the held bytes then count as the key Escape, a bad
 * character, a finished paste or Enter. Bytes that begin an answer of the terminal and no key
 * wait for its end without that.
 */
bool typing_waits(const struct typing *typing);
int typing_patience_ms(const struct typing *typing); /* -1: nothing is waited for */
void typing_settle(struct typing *typing);

/* Forget all bytes that have come. */
void typing_clear(struct typing *typing);
