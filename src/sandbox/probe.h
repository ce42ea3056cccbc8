/*
 * probe: what this kernel lets a process build a cell from, found by trying it in a
 * child that is gone afterwards. For people (`glovebox doctor`): the cell itself never
 * asks, it builds and fails.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum { PROBE_VALUE_MAX = 160, PROBE_REMEDY_MAX = 320, PROBE_FACTS_MAX = 16 };

struct probe_fact {
	const char *name;
	char value[PROBE_VALUE_MAX];   /* "ABI 7", "not permitted (EPERM)" */
	bool missing;                  /* level L3 needs it, and it is not there */
	char remedy[PROBE_REMEDY_MAX]; /* how to mend it; "" when nothing is missing */
};

/* Fill FACTS, return their number. */
size_t probe_kernel(struct probe_fact facts[PROBE_FACTS_MAX]);
