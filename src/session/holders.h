/*
 * holders: does a process outside of the cell hold what a git has left in it? Only the front sees
 * the machine's processes. A wrong yes costs a line that a person reads; a wrong no would take a
 * lock from a git that works, so whatever is not sure is a yes.
 */
#pragma once
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Give each item of LEFT (git_scan.h) a `held`, a text for people, where a process has the file
 * open, or is a git that works below ROOTS (a list of keys of paths) or may do so. A process that
 * is found is waited for until DEADLINE_MS. ENDED: the cell has ended processes of
 * the call. Without that nothing is free where this process does not see the whole machine.
 */
void holders_find(struct value *left, const struct value *roots, bool ended,
		  int64_t deadline_ms);
