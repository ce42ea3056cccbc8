/*
 * backlog: text that waits for a terminal. A terminal that takes nothing (Ctrl+S, a dead link)
 * never stops the agent: what is over the ceiling is left out of the middle, by whole lines, and
 * one line of ours in the gap says how much. The beginning and the end are there. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct backlog {
	struct buf head, tail; /* TAIL: what came since HEAD was full */
	size_t lines, bytes;   /* left out between them */
	bool colour;           /* the text may have colours: the gap ends them */
};

/* Keep at most MOST bytes. */
void backlog_init(struct backlog *backlog, size_t most, bool colour);
void backlog_fini(struct backlog *backlog);

void backlog_add(struct backlog *backlog, struct str text);
bool backlog_is_empty(const struct backlog *backlog);
/*
 * Move the beginning of the text to OUT: about MOST bytes, and no part of a line that is longer.
 */
void backlog_take(struct backlog *backlog, size_t most, struct buf *out);
