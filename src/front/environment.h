/*
 * environment: removes secrets from the environment before a one-shot verb makes a cell.
 * Such a verb clones itself into the cell instead of starting the program again, so the
 * anchor gets a copy of all that is in memory at that moment.
 */
#pragma once
#include "policy/policy.h"

/*
 * Copy the variables that a cell's own environment is made from and those that the policy
 * passes by name (PASSED), then overwrite all variables where they stand. So only those
 * API keys are left in this process that the policy passes. Returns the copy, NULL-ended,
 * which is also the new `environ` and lives until the process ends.
 */
const char *const *environment_wipe(const struct policy_names *passed);
