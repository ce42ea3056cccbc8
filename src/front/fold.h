/*
 * fold: what verbs print for people, on lines of their terminal: a longer one goes on below,
 * behind the column where its text begins. No word is cut, and what is to be copied as it stands
 * (a command line) stays on its line. Where standard output is no terminal nothing is changed.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stddef.h>

/* Append LINE (clean but for colours, without its end) to OUT, on lines of COLUMNS. */
void fold_line(struct str line, size_t columns, struct buf *out);

/* The same for each line of TEXT; its last one may have no end. */
void fold_lines(struct str text, size_t columns, struct buf *out);
/* The same as the terminal FD shows it; where FD is none TEXT as it is. */
void fold_for(int fd, struct str text, struct buf *out);

/* TEXT, printed on stderr as its terminal shows it. */
void fold_complain(struct str text);

/*
 * What is printed on stdout in between is folded, line by line: one that has no end yet waits for
 * it, so nobody is asked anything meanwhile. NULL: it is no terminal, and nothing is to be ended.
 */
struct fold *fold_begin(void);
void fold_end(struct fold *fold);
