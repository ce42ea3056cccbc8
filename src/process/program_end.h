/*
 * program_end: the end of all that lives in this pid namespace, for its pid 1.
 */
#pragma once
#include <stdint.h>
#include <sys/types.h>

/*
 * Whom nothing but the kernel works on any more executes no instruction: memory of many GiB
 * takes it 0.1 s each to give back, which an answer that is due need not wait for.
 */
enum { PROGRAM_END_PATIENCE_MS = 30 };

/*
 * Kill everything but this process and reap it; REAPED (may be NULL) is told each. Returns
 * when nothing is left, or after PATIENCE_MS (CLOCK_NEVER: not before) when all that is left
 * are dying processes as above: they go with the namespace.
 */
void program_end_all(int64_t patience_ms,
		     void (*reaped)(void *context, pid_t pid, int status), void *context);
