/*
 * fold: breaks long lines that verbs print for people. The rest of a line goes on the
 * next line of the terminal, indented to the column where the text of the line begins. No
 * word is cut, and a line that is to be copied (a command) is not broken. Where standard
 * output is no terminal, nothing is changed.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stddef.h>
#include <stdio.h>

/*
 * Append LINE to OUT, broken into lines of COLUMNS. LINE is clean except for colours and
 * has no line end.
 */
void fold_line(struct str line, size_t columns, struct buf *out);

/* fold_line for each line of TEXT; the last line may have no line end. */
void fold_lines(struct str text, size_t columns, struct buf *out);
/*
 * fold_lines for the width of the terminal FD; where FD is no terminal, append TEXT
 * unchanged.
 */
void fold_for(int fd, struct str text, struct buf *out);

/* Print TEXT on stderr, folded for its terminal. */
void fold_complain(struct str text);

/*
 * The stream that a verb prints on: it writes to standard output, folded line by line. It
 * holds a line back until the line has its end, so do not ask the person anything in an
 * unfinished line. Returns stdout itself where standard output is no terminal.
 */
FILE *fold_open(void);
/* Write the rest of OUT, and close OUT unless it is stdout itself. */
void fold_close(FILE *out);
