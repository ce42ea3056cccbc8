/* delegations: the calls of delegate_agent that are under way; for the orchestra's files. */
#pragma once
#include "agent/tools/orchestra_parts.h"

/* All of them end now, each with all it started. */
void delegations_end(struct orchestra *orchestra);

/* The rest of tool_delegate_agent.c: */
void delegations_begin(void *keeper, struct running *running);
void delegations_stop(void *keeper, struct running *running);
