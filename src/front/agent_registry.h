/* agent_registry: the agents that one may delegate to, as all layers have them now. */
#pragma once
#include "base/err.h"
#include "base/value.h"
#include "front/setup.h"

#include <stdbool.h>

/*
 * A list of {name, description, tools, write, only_reads}, by name: shipped roles, the user's,
 * the configuration's, and those of the workspace that were let in; without those in CHAIN (a
 * circle) and those that SETUP's agent may not delegate to. One that cannot be read is left
 * out. OTHER_NAMES: an object, other name of a shipped role -> that role, without the names
 * that are agents of their own. The caller frees both.
 */
bool agent_registry_make(struct setup *setup, const struct value *chain,
			 struct value **registry, struct value **other_names,
			 struct err *err);
