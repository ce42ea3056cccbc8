/*
 * failing: finds the lines in which compilers and test runners report a failure, by how
 * these lines begin. When an output is too long for an answer, the answer names these
 * lines with their numbers.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FAILING_SHOWN = 10, /* the most lines that are shown */
	/* of each line, whose beginning says what failed and where */
	FAILING_LINE_BYTES = 200,
};

/* Does LINE begin with a word for failure, perhaps behind a place ("a.c:12:5: error: …")? */
bool failing_line(struct str line);

/*
 * Append such lines of the file FD, from its byte FROM on, that SHOWN does not have yet:
 * "NUMBER<tab>line" each, the first FAILING_SHOWN. NUMBER: the number of the line at
 * FROM. Returns how many such lines there are.
 */
size_t failing_gather(int fd, uint64_t from, size_t number, struct str shown,
		      struct buf *out);
