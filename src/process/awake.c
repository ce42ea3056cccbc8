/* awake: see awake.h. */
#include "process/awake.h"

#include "base/clock.h"

#include <sched.h>

int awake_poll(struct pollfd *slots, nfds_t count, int64_t until_us)
{
	int ready;

	while ((ready = poll(slots, count, 0)) == 0 && clock_now_us() < until_us)
		(void)sched_yield();
	return ready;
}
