/*
 * menu: what may be typed at the cursor, in rows below the editor, while the person types: the
 * names of commands, the files behind an `@`. line.c shows it and gives it the keys. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct line_look;

enum {
	MENU_ROWS_MAX = 8,         /* shown at the same time */
	MENU_WORDS_MAX = 64 << 10, /* bytes of all words */
	MENU_HINT_MAX = 256,
};

struct menu {
	struct buf words; /* WORD, or WORD, a tab and its description; a line each */
	size_t count;     /* of the words; 0: the menu is closed */
	size_t from;      /* where the word begins in the text */
	size_t at, first; /* the chosen word, and the first one that is shown */
	bool moved;       /* the person has chosen by an arrow */
	bool left;        /* Escape has closed it, for the word that begins at `from` */
	struct buf hint;  /* shown dim behind the text: the argument that may follow */
};

void menu_init(struct menu *menu);
void menu_fini(struct menu *menu);

/* Close the menu, and take the hint away. */
void menu_close(struct menu *menu);
/* Escape: close it, and keep it closed for the word that begins at `from`. */
void menu_leave(struct menu *menu);
/* menu->words and menu->from were set: count them, and choose the first. */
void menu_open(struct menu *menu);
/* Choose the next word (DOWN), or the one before; behind the last comes the first. */
void menu_move(struct menu *menu, bool down);

/* The word number AT, without its description. */
struct str menu_word(const struct menu *menu, size_t at);
/* The longest beginning that all words have. */
struct str menu_common(const struct menu *menu);
bool menu_has(const struct menu *menu, struct str word);

/*
 * Append at most ROWS rows of COLUMNS to OUT, painted as LOOK says, with the chosen word
 * among them. Returns how many there are.
 */
size_t menu_add_rows(const struct menu *menu, size_t rows, size_t columns,
		     const struct line_look *look, struct buf *out);
