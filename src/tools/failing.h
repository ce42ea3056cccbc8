/*
 * failing: lines by which compilers and test runners tell of a failure, found by how they begin:
 * of an output that is too long for an answer these are told with their numbers.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FAILING_SHOWN = 10,       /* lines that are told */
	FAILING_LINE_BYTES = 200, /* of each; its beginning says what and where */
};

/* Does LINE begin with a word for failure, perhaps behind a place ("a.c:12:5: error: …")? */
bool failing_line(struct str line);

/*
 * Append those of the file FD, from its byte FROM on, that stand not yet in SHOWN: "NUMBER<tab>line"
 * each, the first FAILING_SHOWN. NUMBER: of the line at FROM. Returns how many there are.
 */
size_t failing_gather(int fd, uint64_t from, size_t number, struct str shown,
		      struct buf *out);
