/*
 * fold: what verbs print for people, on lines of their terminal: a longer one goes on below,
 * behind the column where its text begins. No word is cut, and what is to be copied as it stands
 * (a command line) stays on its line. Where standard output is no terminal nothing is changed.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stddef.h>
#include <stdio.h>

/* Append LINE (clean but for colours, without its end) to OUT, on lines of COLUMNS. */
void fold_line(struct str line, size_t columns, struct buf *out);

/* The same for each line of TEXT; its last one may have no end. */
void fold_lines(struct str text, size_t columns, struct buf *out);
/* The same as the terminal FD shows it; where FD is none TEXT as it is. */
void fold_for(int fd, struct str text, struct buf *out);

/* TEXT, printed on stderr as its terminal shows it. */
void fold_complain(struct str text);

/*
 * The writer of a verb: what is printed on it comes out on standard output, folded line by line. A
 * line that has no end yet waits for it, so nobody is asked anything meanwhile. It is stdout itself
 * where that is no terminal.
 */
FILE *fold_open(void);
/* Write what is left of OUT, and free it unless it is stdout itself. */
void fold_close(FILE *out);
