/*
 * outline: the lines of a file that begin a function, a class, a heading or a section, as far
 * as single lines tell it: a map of what an answer does not show. Any text gives an outline;
 * data has none.
 *
 * A large file is shown by a part and its outline, and a file that is no text by its
 * kind.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stddef.h>

struct outline;

/* For a file of this NAME, whose content begins with START. NULL: it is data, or unknown. */
struct outline *outline_new(const char *name, struct str start);
void outline_free(struct outline *outline); /* NULL is fine */

/* LINE, without its end, has this NUMBER. In order. NULL is fine. */
void outline_add(struct outline *outline, size_t number, struct str line);

/*
 * Append at most MOST places in at most BYTES, "NUMBER<tab>line" each: those of the outer levels
 * first, and of one level that has too many some from everywhere. Returns how many.
 */
size_t outline_print(struct outline *outline, size_t most, size_t bytes, struct buf *out);
/* How many there are. */
size_t outline_count(const struct outline *outline);

/* What bytes that are no text look like, by how they begin. */

/* "PNG", "gzip"; NULL: nothing known. */
const char *outline_binary_kind(struct str start);
