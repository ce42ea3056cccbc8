/*
 * wrapped: somebody's own agent as the run of a task: `glovebox wrap PROFILE` (docs/wrap.md) over
 * the workspace of the task's cell, in a cell of its own with the hosts and keys of its profile.
 * It ends with its task, and with our process.
 */
#pragma once

#include "fleet/steps/site.h"
#include "fleet/steps/step.h"

#include <stdbool.h>

/* Run it. True: it ran, and RAN says how it ended; fleet_ran_fini in either case. */
bool fleet_wrapped_run(struct fleet_steps *steps, const struct fleet_site *site,
		       struct fleet_ran *ran);
