/*
 * fresh: lets each call see the folders below the layers of its cell as they are now. The
 * kernel remembers names that were asked for in an overlay, also those that are missing. A
 * file that somebody replaces below, as every editor does, or that is made or removed there,
 * is therefore not seen. A remount of the overlay drops that memory in about 0.1 ms.
 *
 * Only the anchor may mount. A worker asks it before each call, over a pair of sockets and
 * two counters in shared memory, and waits a moment for the answer. A worker gets nothing by
 * asking but a remount with the options that the layer has.
 *
 * A cell of one call has just mounted its layers, and cells without layers have no memory to
 * drop: both have none of this.
 */
#pragma once

#include "base/err.h"
#include "sandbox/view.h"

#include <stdbool.h>

struct fresh_counts;

struct fresh {
	struct fresh_counts *counts; /* shared; NULL: nothing is asked for */
	int anchor, worker;          /* the ends of the pair; -1: closed */
};

/* In the anchor, before its workers: prepare for the layers of VIEW, if there are any. */
bool fresh_open(struct fresh *fresh, const struct view *view, struct err *err);
/*
 * In a worker: make sure that the next call sees what is below now. Waits for 0.5 s at most.
 * False: the call may see names as they were before.
 */
bool fresh_ask(const struct fresh *fresh);
/* In the anchor, when its end of the pair is readable: remount the layers of VIEW. */
void fresh_answer(const struct fresh *fresh, const struct view *view);
