/*
 * privilege: taking rights away from the calling process, for good. Inside sandbox/
 * only.
 */
#pragma once
#include "base/err.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Keep exactly the capabilities in MASK (bit n: capability n), effective and permitted;
 * the others can never come back.
 */
bool privilege_reduce(uint64_t mask, struct err *err);

/*
 * Drop the bounding set and lock the bits by which an exec could regain capabilities.
 * Needs CAP_SETPCAP.
 */
bool privilege_lock(struct err *err);

/*
 * Landlock: writing only below the NULL-ended WRITABLE paths, and to what /dev and /proc
 * offer; signals only to processes that are under it too.
 */
bool landlock_write_below(const char *const *writable, struct err *err);

/* Landlock: no right to any file, signals to nobody else, no abstract socket. */
bool landlock_no_files(struct err *err);

/* All descriptors but KEEP (sorted, COUNT) closed; then 0, 1 and 2 lead nowhere. */
bool privilege_close(const int *keep, size_t count, struct err *err);

/* RLIMIT WHICH at MOST; NAME is for the sentence. */
bool privilege_limit(int which, uint64_t most, const char *name, struct err *err);

/* From this ABI on a process cannot send signals out of its Landlock domain. */
enum { LANDLOCK_ABI_SCOPES = 6 };

/* Why no ruleset can be made (errno), as a sentence; false. */
bool landlock_refused(struct err *err);

bool landlock_enter(int ruleset, struct err *err);

/*
 * The system-call filter of LEVEL (made by filter_make.c). Last of all. *LISTENER (may be
 * NULL) as in struct walls.
 */
bool filter_enter(enum sandbox_level level, int *listener, struct err *err);
