/*
 * list: rows of which a person chooses one, in place of the editor. Typed letters filter: a
 * row stays while each typed word is in it, in any case of letters. Pure: keys go in, rows
 * come out. console_pick (console.h) shows a list on the terminal.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "tui/line.h"
#include "tui/typing.h"

#include <stddef.h>

enum {
	LIST_ROWS_MAX = 10,      /* shown at the same time */
	LIST_ITEMS_MAX = 10000,  /* further ones are not taken */
	LIST_FILTER_MAX = 256,   /* bytes that are typed */
	LIST_ITEM_MAX = 4 << 10, /* bytes of a text or detail, as it is shown */
};

struct list_item {
	char *text, *detail; /* safe for a terminal, on one line */
};

struct list {
	const char *title; /* borrowed: "Sessions" */
	struct list_item *items;
	size_t count;
	struct buf filter;
	size_t *fitting; /* the numbers of the items that pass the filter */
	size_t fits;
	size_t at;    /* the chosen one of them */
	size_t first; /* the first one that is shown */
};

void list_init(struct list *list, const char *title);
void list_fini(struct list *list);
/* Add an item. TEXT and DETAIL may be foreign; DETAIL, which may be empty, stands behind TEXT. */
void list_add(struct list *list, struct str text, struct str detail);

enum list_result {
	LIST_GOES_ON,
	LIST_CHOSEN,   /* Enter: list_choice says which */
	LIST_LEFT,     /* Escape, Ctrl+C or Ctrl+D: none is chosen */
	LIST_CLEARED,  /* Ctrl+L: clear the screen, draw again */
	LIST_SUSPENDED /* Ctrl+Z */
};

/* Let LIST handle KEY. TYPED is the text of TYPING_TEXT and TYPING_PASTE. */
enum list_result list_take(struct list *list, enum typing_key key, struct str typed);

/* The number of the chosen item, in the order of list_add; SIZE_MAX: no item fits. */
size_t list_choice(const struct list *list);

/*
 * Compose the rows of LIST: the title with the filter, where the cursor stands, then the items
 * around the chosen one.
 */
void list_compose(struct line_frame *frame, const struct list *list,
		  const struct line_look *look);
/* Append LIST as numbered lines, for a terminal without cursor movement. */
void list_print(const struct list *list, struct buf *out);
