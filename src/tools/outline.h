/*
 * outline: the lines of a file that begin a function, a class, a heading or a section,
 * as far as single lines show it. It is a map of the parts that an answer does not
 * show. Any text has an outline; data has none.
 *
 * A large file is shown by a part and its outline, and a file that is no text by its
 * kind.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stddef.h>

struct outline;

/*
 * Begin the outline of a file with this NAME, whose content begins with START. NULL: the
 * file is data, or of an unknown kind.
 */
struct outline *outline_new(const char *name, struct str start);
void outline_free(struct outline *outline); /* NULL is fine */

/*
 * Take LINE, without its end, which has this NUMBER. Call it for all lines in their
 * order. NULL is fine.
 */
void outline_add(struct outline *outline, size_t number, struct str line);

/*
 * Append at most MOST places in at most BYTES, "NUMBER<tab>line" each: those of the outer
 * levels first, and, of the first level that has too many, some from every part of the
 * file. Returns how many were appended.
 */
size_t outline_print(struct outline *outline, size_t most, size_t bytes, struct buf *out);
/* The number of places. */
size_t outline_count(const struct outline *outline);

/* Kinds of files that are no text, told by their beginning. */

/* "PNG", "gzip"; NULL: the kind is not known. */
const char *outline_binary_kind(struct str start);
