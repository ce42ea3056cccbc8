/*
 * holders: does a process outside of the cell hold a file that a git has left in the
 * cell? Only the front sees the machine's processes. A wrong yes costs a line that a
 * person reads. A wrong no would take a lock from a git that works, so every doubt is a
 * yes.
 */
#pragma once
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Give each item of LEFT (scan.h) a `held`, a text for people, when a process has the
 * item's file open, or is a git that works below ROOTS (a list of keys of paths) or may
 * do so. While such a process is found, look again until DEADLINE_MS. ENDED: the cell has
 * ended processes of the call. When ENDED is false and this process does not see the
 * whole machine, every item counts as held.
 */
void holders_find(struct value *left, const struct value *roots, bool ended,
		  int64_t deadline_ms);
