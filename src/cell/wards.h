/*
 * wards: the workers of an anchor that has no pid namespace, and how they are ended. A
 * worker that ends by itself kills all its processes. The processes of a killed worker
 * become orphans of the anchor, which ends them immediately. When the front is gone, the
 * anchor ends all processes of the cell. An anchor with a pid namespace needs none of
 * this: the kernel does it.
 */
#pragma once
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct wards {
	int front;      /* pidfd of the front */
	int deaths;     /* readable when a child has ended */
	bool alone;     /* kill(-1) reaches this cell and nothing else */
	pid_t *workers; /* ends with 0 */
	size_t count;
};

/* Takes ownership of FRONT. ALONE: the anchor has a signal domain. */
bool wards_init(struct wards *wards, int front, bool alone, struct err *err);
void wards_add(struct wards *wards, pid_t worker);

/* Called in a new worker: close the descriptors and unblock the signals of the anchor. */
void wards_forget(struct wards *wards);

/* Wait until CONTROL can be read; false when the front is gone. */
bool wards_wait(struct wards *wards, int control);

/* End every worker and all that they started, and wait until nothing is left. */
void wards_end(struct wards *wards);
