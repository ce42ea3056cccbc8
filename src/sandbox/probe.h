/*
 * probe: what this kernel lets a process build a cell from, found by trying it in a
 * child that is gone afterwards. For people (`glovebox doctor`), for users who
 * allow a level below L3, and for the message when no cell could be built. A cell of L3
 * never probes: it builds or fails.
 *
 * A user who allows less than L3 has the machine looked at first.
 */
#pragma once

#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stddef.h>

enum { PROBE_VALUE_MAX = 160, PROBE_REMEDY_MAX = 320, PROBE_FACTS_MAX = 20 };

struct probe_fact {
	const char *name;
	char value[PROBE_VALUE_MAX];   /* "ABI 7", "not permitted (EPERM)" */
	bool missing;                  /* level L3 needs it, and it is not there */
	char remedy[PROBE_REMEDY_MAX]; /* how to mend it; "" when nothing is missing */
};

/* Fill FACTS, return their number. */
size_t probe_kernel(struct probe_fact facts[PROBE_FACTS_MAX]);

/* How far this machine reaches. */
struct probe_reach {
	enum sandbox_level level;
	/* what stands in the way of the next one up, and how to mend it; "" at L3 */
	char because[PROBE_VALUE_MAX];
	char remedy[PROBE_REMEDY_MAX];
};
void probe_reach(struct probe_reach *reach);

/* A row of the table of levels that the screen shows. */
struct level_row {
	const char *name;  /* "L2" */
	const char *walls; /* what it is made of */
	const char *holds; /* what it promises, and what of L3 is missing */
};
const struct level_row *probe_level_row(enum sandbox_level level);
