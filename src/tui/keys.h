/*
 * keys: which key does what. A chord is one key with its modifiers, and each action has some
 * chords. The defaults are ours. The person's file keys.json, in the configuration folder,
 * gives actions other chords:
 *
 *	{"viewer": "ctrl+y", "new-line": ["shift+enter", "alt+enter"], "swap": []}
 *
 * An action that the file names has these chords and no others, and a chord that the file
 * names belongs to no other action. A character without Ctrl or Alt is always text. A file that
 * leaves no key to send a text, to stop the agent or to quit is a mistake.
 *
 * A new action is a row of the enumeration, a row of the table in keys.c, and its effect in
 * line.c or console.c.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The actions, and the texts that typing.h gives beside them. */
enum typing_key {
	TYPING_NONE, /* a key without a meaning here */
	TYPING_TEXT, /* typed: characters, valid UTF-8 without control bytes */
	TYPING_PASTE, /* pasted: valid UTF-8, line ends as "\n", tabs; other control bytes as U+FFFD */
	TYPING_ENTER, /* send; while something runs, to what runs */
	TYPING_QUEUE, /* send for the time after what runs */
	TYPING_NEW_LINE,
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
	TYPING_KILL_WORD_LEFT, /* back to a blank */
	TYPING_KILL_NAME_LEFT, /* back to the start of a name */
	TYPING_KILL_WORD_RIGHT,
	TYPING_YANK,
	TYPING_SWAP, /* the two characters at the cursor */
	TYPING_UNDO,
	TYPING_CLEAR,     /* the screen */
	TYPING_SEARCH,    /* back in the history */
	TYPING_SEARCH_ON, /* forward again */
	TYPING_CANCEL,
	TYPING_INTERRUPT,
	TYPING_EOF,
	TYPING_SUSPEND,
	TYPING_TAKE_BACK, /* what was sent and nobody has taken */
	TYPING_ESCAPE,
	TYPING_PICTURE, /* from the clipboard */
	TYPING_EDITOR,  /* the person's own */
	TYPING_REWIND,
	TYPING_VIEWER,
	TYPING_TASKS,
	TYPING_MODE,
	TYPING_PASTE_END, /* what was pasted is whole; it may come in pieces */
	TYPING_ANSWER, /* no key: an answer of the terminal (term.h), which is the text */
};

enum { KEYS_SHIFT = 1, KEYS_ALT = 2, KEYS_CTRL = 4 };

/* Keys that type no character. All others have the code of their character, not shifted. */
enum keys_code {
	KEYS_TAB = '\t',
	KEYS_ENTER = '\r',
	KEYS_ESCAPE = 0x1b,
	KEYS_SPACE = ' ',
	KEYS_BACKSPACE = 0x7f,
	KEYS_NO_CHARACTER = 0x110000, /* no key: the codes behind it are no characters */
	KEYS_UP,
	KEYS_DOWN,
	KEYS_LEFT,
	KEYS_RIGHT,
	KEYS_HOME,
	KEYS_END,
	KEYS_INSERT,
	KEYS_DELETE,
	KEYS_PAGE_UP,
	KEYS_PAGE_DOWN,
	KEYS_F1,
	KEYS_F12 = KEYS_F1 + 11,
};

struct keys_chord {
	uint32_t code; /* an enum keys_code or a character; 0: no key */
	unsigned modifiers;
};

enum {
	KEYS_BOUND_MAX = 320, /* chords of all actions */
	KEYS_FILE_MAX = 64 << 10,
};

struct keys_bound {
	struct keys_chord chord;
	enum typing_key key;
	bool own; /* the person's file says so */
};

struct keys {
	struct keys_bound bound[KEYS_BOUND_MAX];
	size_t count;
};

void keys_init(struct keys *keys); /* the defaults */

/*
 * Change KEYS as TEXT says, which is the content of keys.json. On failure KEYS is unchanged,
 * and ERR names the mistake.
 */
bool keys_parse(struct keys *keys, struct str text, struct err *err);
/* keys_parse of the file PATH. A file that is not there changes nothing. */
bool keys_load(struct keys *keys, const char *path, struct err *err);

/* The chord of the byte that a terminal sends for a key, with Alt when it follows an Escape. */
struct keys_chord keys_chord_of_byte(unsigned char byte, bool alt);
/*
 * The action of CHORD; TYPING_NONE: it has none. An action of the same key with fewer
 * modifiers counts where it can be meant: Shift, and any at an arrow.
 */
enum typing_key keys_find(const struct keys *keys, struct keys_chord chord);

/* Append the name of CHORD ("ctrl+shift+up"). */
void keys_print_chord(struct keys_chord chord, struct buf *out);
/*
 * Append SENTENCE, of ours, to OUT, with the first key of an action in place of its name in braces:
 * "{viewer} shows all" is "Ctrl+O shows all". An action without a key is what stands behind a bar
 * ("{viewer|/view}"), or else its name. KEYS NULL: the defaults.
 */
void keys_say(const struct keys *keys, const char *sentence, struct buf *out);
/* Append a row for each action: its name, its chords, its effect. */
void keys_print(const struct keys *keys, struct buf *out);
