/*
 * width: counts the columns that a text takes on a terminal. No other module uses
 * utf8proc.
 */
#pragma once
#include "base/str.h"

/*
 * Columns of TEXT (one line, no control bytes). A byte that is not UTF-8 counts as one
 * column.
 */
size_t width_of(struct str text);

/*
 * Size of the longest beginning of TEXT that takes at most COLUMNS; no character is cut.
 */
size_t width_fit(struct str text, size_t columns);

/* Size of the first character of TEXT as a person sees it, with all combining marks. */
size_t width_character(struct str text, size_t *columns);
