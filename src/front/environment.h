/*
 * environment: what a one-shot verb leaves of the caller's variables before it makes a
 * cell. These verbs clone themselves into the cell instead of starting the program
 * again, so what is in memory then is in the anchor's too.
 */
#pragma once
#include "policy/policy.h"

/*
 * Keep a copy of the variables that a cell's own environment is made from, and
 * overwrite all others where they stand: no key is left in this process but those that
 * the policy PASSED by name. NULL-ended;
 * `environ` is the copy as well; it lives to the end.
 */
const char *const *environment_wipe(const struct policy_names *passed);
