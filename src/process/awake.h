/*
 * awake: waiting without sleep, for what comes within microseconds. To wake a process that sleeps
 * on the other processor takes longer (docs/performance.md, "Warm calls").
 *
 * Between two looks whoever else is ready gets the processor: the one who is to answer, or who
 * was answered, may be waiting for this very one. Without that one call in two took a hundred
 * microseconds longer.
 */
#pragma once
#include <poll.h>
#include <stdint.h>

/*
 * As poll, until UNTIL_US (clock.h), which may have been: it looks once at least. 0: nothing
 * came; -1 with errno.
 */
int awake_poll(struct pollfd *slots, nfds_t count, int64_t until_us);
