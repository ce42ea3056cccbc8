/*
 * guard: sees a model that goes round in circles. Three identical calls in a row, more
 * than five equal ones among the last ten, or three timeouts in a row end the run.
 * Pure.
 */
#pragma once
#include "base/err.h"
#include "base/hash.h"
#include "runtime/tool.h"

#include <stdbool.h>
#include <stddef.h>

/* A second try and a wait between edits are honest work; these counts are not. */
enum {
	GUARD_IN_A_ROW = 3,
	GUARD_WINDOW = 10,
	GUARD_IN_WINDOW = 5,
	GUARD_TIMEOUTS = 3,
};

/* Zero is a fresh one; it owns nothing. */
struct guard {
	char recent[GUARD_WINDOW][HASH_HEX + 1]; /* a ring of what was called, hashed */
	size_t calls;                            /* all that came */
	unsigned timeouts;                       /* in a row */
};

/*
 * The model makes this call. Arguments are equal when they are as JSON (order and
 * blanks do not count), else by their bytes. False: it must not run, WHY says the
 * reason.
 */
bool guard_call(struct guard *guard, const char *tool, const char *arguments,
		struct err *why);

/* A call ended. False: that was one timeout too many. */
bool guard_result(struct guard *guard, enum result_status status, struct err *why);
