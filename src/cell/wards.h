/*
 * wards: the workers of an anchor that has no pid namespace, and an end to them. What a
 * worker left when it died (its own end kills everything; this is for one that was
 * killed) comes to the anchor as an orphan and is ended at once; with the front all is.
 * An anchor with a pid namespace needs none of this: the kernel does it.
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

/* FRONT is taken. ALONE: the anchor has a signal domain. */
bool wards_init(struct wards *wards, int front, bool alone, struct err *err);
void wards_add(struct wards *wards, pid_t worker);

/* In a new worker: what it must not keep. */
void wards_forget(struct wards *wards);

/* Wait until CONTROL can be read; false when the front is gone. */
bool wards_wait(struct wards *wards, int control);

/* End every worker and all that they started, and wait until nothing is left. */
void wards_end(struct wards *wards);
