/*
 * line_history: what was typed before, oldest first, in memory and in a file of the user's
 * state (0600). Bounded on both sides. One entry is one line of the file, with "\\" for a
 * backslash and "\n" for a line end; what is no UTF-8 or holds other control bytes is left
 * out when it is read. Several programs may append to one file.
 *
 * Not kept: what begins with a blank (the person's way to say so), what was said last
 * already, and what is longer than an entry may be.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	LINE_HISTORY_ENTRIES = 1000,
	LINE_HISTORY_ENTRY_MAX = 16 << 10,
	LINE_HISTORY_FILE_MAX = 1 << 20, /* the file is cut to its newer half beyond this */
};

struct line_history;

struct line_history *line_history_new(void);          /* in memory alone */
void line_history_free(struct line_history *history); /* NULL is fine */

/*
 * Read the file PATH, made when it is not there (folders too), and append to it from now on.
 * ERR: it cannot be had; the history then stays in memory.
 */
bool line_history_open(struct line_history *history, const char *path, struct err *err);

/* The entries that TEXT, in the file's form, holds. */
void line_history_parse(struct line_history *history, struct str text);

size_t line_history_count(const struct line_history *history); /* NULL: 0 */
/* Valid until the next is added. */
struct str line_history_item(const struct line_history *history, size_t at);

/* Best effort with the file: what could not be written is in memory still. */
void line_history_add(struct line_history *history, struct str text);
