/*
 * family: what anchor and workers without a pid namespace do instead. Orphans come to
 * them, and a Landlock domain keeps signals in, so that kill(-1) reaches what is theirs and
 * nothing else. Inside sandbox/ only.
 */
#pragma once
#include "base/err.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stdint.h>

/* The anchor's part; REACH as sandbox_settle's. */
bool family_settle(enum sandbox_level level, struct reach *reach, struct err *err);

/*
 * A worker's first part: dies with the anchor, takes orphans in, holds the list of its
 * children open (/proc will be closed), and starts PROCESSES at most.
 */
bool family_begin(uint64_t processes, struct reach *reach, struct err *err);

/* Its last at L2: the file rules RULES (closed), and the domain. */
bool family_close(int rules, struct reach *reach, struct err *err);

/* Processes and threads that the user has now, everywhere: what RLIMIT_NPROC counts. */
uint64_t tasks_of_user(void);
