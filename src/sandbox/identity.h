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
 * What anchor and workers without a pid namespace do instead. Orphans come to them, and
 * a Landlock domain keeps signals in, so that kill(-1) reaches what is theirs and
 * nothing else. Inside sandbox/ only.
 */

/* The anchor's part; REACH as sandbox_settle's. */
bool identity_family_settle(enum sandbox_level level, struct reach *reach, struct err *err);

/*
 * A worker's first part: dies with the anchor, takes orphans in, holds the list of its
 * children open (/proc will be closed), and starts PROCESSES at most.
 */
bool identity_family_begin(uint64_t processes, struct reach *reach, struct err *err);

/* Its last at L2: the file rules RULES (closed), and the domain. */
bool identity_family_close(int rules, struct reach *reach, struct err *err);

/* Processes and threads that the user has now, everywhere: what RLIMIT_NPROC counts. */
uint64_t identity_tasks_of_user(void);

/* Taking rights away from the calling process, for good. Inside sandbox/ only. */

/*
 * Keep exactly the capabilities in MASK (bit n: capability n), effective and permitted;
 * the others can never come back.
 */
bool identity_privilege_reduce(uint64_t mask, struct err *err);

/*
 * Drop the bounding set and lock the bits by which an exec could regain capabilities.
 * Needs CAP_SETPCAP.
 */
bool identity_privilege_lock(struct err *err);

/*
 * Landlock: writing only below the NULL-ended WRITABLE paths, and to what /dev and /proc
 * offer; signals only to processes that are under it too.
 */
bool identity_landlock_write_below(const char *const *writable, struct err *err);

/* Landlock: no right to any file, signals to nobody else, no abstract socket. */
bool identity_landlock_no_files(struct err *err);

/* All descriptors but KEEP (sorted, COUNT) closed; then 0, 1 and 2 lead nowhere. */
bool identity_privilege_close(const int *keep, size_t count, struct err *err);

/* RLIMIT WHICH at MOST; NAME is for the sentence. */
bool identity_privilege_limit(int which, uint64_t most, const char *name, struct err *err);

/* From this ABI on a process cannot send signals out of its Landlock domain. */
enum { LANDLOCK_ABI_SCOPES = 6 };

/* Why no ruleset can be made (errno), as a sentence; false. */
bool identity_landlock_refused(struct err *err);

bool identity_landlock_enter(int ruleset, struct err *err);

/*
 * The system-call filter of LEVEL (made by filter_make.c). Last of all. *LISTENER (may be
 * NULL) as in struct walls.
 */
bool identity_filter_enter(enum sandbox_level level, int *listener, struct err *err);
