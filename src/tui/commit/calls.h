/*
 * calls: the ended calls of an agent as a terminal keeps them. Each is one line: what was called,
 * how it went, how long it took. Below it stands what matters: the last lines of a command's
 * output, the diff of an edit, the first line of the reason why a call failed. Reading and
 * searching is the line alone, and such calls in a row are one: "read 4 files, 2 searches".
 */
#pragma once

#include "base/buf.h"
#include "base/value.h"
#include "tui/paint.h"

#include <stdbool.h>
#include <stddef.h>

/* The calls in a row that only read, whose line is not printed yet. */
struct calls {
	size_t count, files, searches;
	struct buf only; /* the line of the first of them */
};

void calls_init(struct calls *calls);
void calls_fini(struct calls *calls);

/*
 * Paint an ended call: ARGUMENTS as they were sent, RESULT as tool_result_value has it. Returns
 * whether there is more than the line of the call.
 */
bool calls_paint(struct paint *paint, const char *tool, const struct value *arguments,
		 const struct value *result);

/*
 * Count the call among CALLS, when it only read and went well. PAINT says how its line looks.
 * False: the caller paints it.
 */
bool calls_take(struct calls *calls, const struct paint *paint, const char *tool,
		const struct value *arguments, const struct value *result);
/* Append the line of CALLS, of which there is at least one. */
void calls_print(const struct calls *calls, struct paint *paint);
void calls_clear(struct calls *calls);
