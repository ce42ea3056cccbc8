/*
 * agent_registry: the agents that an agent may delegate to, from all layers, as they are
 * now.
 */
#pragma once
#include "base/err.h"
#include "base/value.h"
#include "front/setup.h"

#include <stdbool.h>

/*
 * REGISTRY: a list of {name, description, tools, write, only_reads}. First come the
 * shipped roles, the user's roles and the agents of the configuration, sorted by name,
 * then the roles of the workspace that were let in. Left out are the agents in CHAIN
 * (delegating to them would be a circle), those that SETUP's agent may not delegate to,
 * and those that cannot be read. OTHER_NAMES: an object, other name of a shipped role ->
 * that role, without the names that are agents of their own. The caller frees both.
 */
bool agent_registry_make(struct setup *setup, const struct value *chain,
			 struct value **registry, struct value **other_names,
			 struct err *err);
