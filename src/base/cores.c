/* cores: one question to the scheduler; see cores.h. */
#include "base/cores.h"

#include <sched.h>

unsigned cores_usable(void)
{
	cpu_set_t cores;

	return sched_getaffinity(0, sizeof(cores), &cores) == 0
		       ? (unsigned)CPU_COUNT(&cores)
		       : 1;
}
