/*
 * tail: the end of what the calls under way print, for rows that change. Of several calls it shows
 * the one that has printed last. Read from the events of the session. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "tool/event.h"

#include <stddef.h>

enum { TAIL_BYTES_MAX = 16 << 10 }; /* of each call, more than a window shows */

struct tail_call {
	char *id;
	struct buf text; /* any bytes; from the beginning of a line on */
	struct tail_call *next;
};

/* Its zero is empty. */
struct tail {
	struct tail_call *calls; /* that have printed something, the last one first */
};

void tail_fini(struct tail *tail);
void tail_event(struct tail *tail, const struct event *event);
/* The id of the call that is shown; NULL: none has printed anything. */
const char *tail_call(const struct tail *tail);
/* Append its last lines, clean, at most ROWS of them, each behind two blanks and with its line end. */
void tail_print(const struct tail *tail, size_t rows, struct buf *out);
