/*
 * identity: the cell's private network, made beside the view. For identity.c.
 *
 * Half of a cell's making is its network namespace, so a helper makes it while the
 * anchor builds the view. The helper shares memory and descriptors with the anchor: it
 * uses kernel_raw only and has ended before the anchor goes on.
 */
#pragma once

#include "base/err.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The replacement for a pid namespace in anchors and workers below L3. They adopt
 * orphans, and a Landlock domain keeps signals inside, so that kill(-1) reaches their
 * own processes and nothing else.
 */

/* The anchor's part. REACH as in sandbox_settle. */
bool identity_family_settle(enum sandbox_level level, struct reach *reach, struct err *err);

/*
 * The first part of a worker: it will die with the anchor, adopts orphans, opens the
 * list of its children (because /proc will be closed), and can start at most PROCESSES
 * processes.
 */
bool identity_family_begin(uint64_t processes, struct reach *reach, struct err *err);

/*
 * The last part of a worker: enter the file rules RULES (which are closed) and the
 * domain.
 */
bool identity_family_close(int rules, struct reach *reach, struct err *err);

/*
 * The number of processes and threads that the user has now on the whole machine, as
 * RLIMIT_NPROC counts them.
 */
uint64_t identity_tasks_of_user(void);

/* Functions that take rights away from the calling process for good. */

/*
 * Keep exactly the capabilities in MASK (bit n: capability n), effective and permitted.
 * The process can never get the others back.
 */
bool identity_privilege_reduce(uint64_t mask, struct err *err);

/*
 * Drop the bounding set and lock the bits by which an exec could regain capabilities.
 * Needs CAP_SETPCAP.
 */
bool identity_privilege_lock(struct err *err);

/*
 * Load Landlock rules: write only below the NULL-ended WRITABLE paths and to files of
 * /dev and /proc, and send signals only to processes under the same rules.
 */
bool identity_landlock_write_below(const char *const *writable, struct err *err);

/* Load Landlock rules: no right to any file, no signals out, no abstract socket. */
bool identity_landlock_no_files(struct err *err);

/*
 * Close all descriptors except KEEP (sorted, COUNT), then open /dev/null as 0, 1 and 2.
 */
bool identity_privilege_close(const int *keep, size_t count, struct err *err);

/* Set RLIMIT WHICH to at most MOST. NAME is for the sentence of a failure. */
bool identity_privilege_limit(int which, uint64_t most, const char *name, struct err *err);

/* From this ABI on a process cannot send signals out of its Landlock domain. */
enum { LANDLOCK_ABI_SCOPES = 6 };

/* Set ERR to a sentence for errno after a ruleset could not be made. Returns false. */
bool identity_landlock_refused(struct err *err);

bool identity_landlock_enter(int ruleset, struct err *err);

/*
 * Load the system-call filter of LEVEL (written by filter_make.c), as the last step of
 * all. *LISTENER (LISTENER may be NULL) as in struct walls.
 */
bool identity_filter_enter(enum sandbox_level level, int *listener, struct err *err);
