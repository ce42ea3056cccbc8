/*
 * probe: finds the parts of a cell that this kernel allows, by trying each of them in a
 * child process that ends afterwards. For people (`glovebox doctor`), for users who
 * allow a level below L3, and for the message when no cell could be built. A cell of L3
 * never probes: it builds or fails.
 *
 * When the user allows a level below L3, the machine is probed before the cell is
 * built.
 */
#pragma once

#include "sandbox/sandbox.h"

#include <stdbool.h>
#include <stddef.h>

enum { PROBE_VALUE_MAX = 160, PROBE_REMEDY_MAX = 320, PROBE_FACTS_MAX = 20 };

struct probe_fact {
	const char *name;
	char value[PROBE_VALUE_MAX]; /* "ABI 7", "not permitted (EPERM)" */
	/* level L3 needs it, and the machine does not have it */
	bool missing;
	char remedy[PROBE_REMEDY_MAX]; /* how to mend it; "" when nothing is missing */
};

/* Fill FACTS. Returns their number. */
size_t probe_kernel(struct probe_fact facts[PROBE_FACTS_MAX]);

/*
 * Does an anchor of IDENTITY build VIEW, so that it can be written to at PATH? 0, or a number of
 * errno.h when the kernel refuses the view. It is 0 also where no anchor could be made.
 */
int probe_view(struct view *view, const struct sandbox_identity *identity, const char *path);

/*
 * The highest level that this machine can reach. A process looks once: its cells have one level,
 * also behind the moment when it hides its memory.
 */
struct probe_reach {
	struct sandbox_strength strength;
	/* the obstacle to the next higher level, and its remedy; "" at L3 */
	char because[PROBE_VALUE_MAX];
	char remedy[PROBE_REMEDY_MAX];
};
void probe_reach(struct probe_reach *reach);

/* The table of levels that the screen shows, the strongest first. It ends with {0}. */
struct level_row {
	const char *name; /* "L2" */
	enum sandbox_level level;
	const char *walls; /* the walls it consists of */
	const char *holds; /* its promises, and the promises of L3 that it lacks */
};
extern const struct level_row probe_levels[];
