/*
 * line_history: the texts that the person typed before, oldest first, in memory and in a
 * file of the user's state (0600). Both are bounded. One entry is one line of the file,
 * with "\\" for a backslash and "\n" for a line end. Lines that are not UTF-8 or hold
 * other control bytes are left out when the file is read. Several programs may append to
 * one file.
 *
 * Not kept: a text that begins with a blank (so a person keeps it out), a text that
 * equals the newest entry, and a text that is too long for an entry.
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

struct line_history *line_history_new(void);          /* only in memory */
void line_history_free(struct line_history *history); /* NULL is fine */

/*
 * Read the file PATH, and append to it from now on. The file and its folders are made
 * when they do not exist. On failure (ERR) the history stays in memory only.
 */
bool line_history_open(struct line_history *history, const char *path, struct err *err);

/* Add the entries of TEXT, which has the form of the file. */
void line_history_parse(struct line_history *history, struct str text);

size_t line_history_count(const struct line_history *history); /* NULL: 0 */
/* The entry AT; valid until the next entry is added. */
struct str line_history_item(const struct line_history *history, size_t at);

/*
 * Add TEXT as the newest entry. When writing the file fails, the entry is still in
 * memory.
 */
void line_history_add(struct line_history *history, struct str text);
