/*
 * delegate_role: the process that a delegate is (agent/delegate.h): one prompt for one agent,
 * as `run --json` works on it, but told over a descriptor what to do. The request is an
 * object:
 *
 *	workspace, config, level   as -C, --config, --minimum-level; config and level may be absent
 *	environment                name -> value: the caller's, with its keys
 *	agent, task                who, and the prompt
 *	model                      the caller's; the agent's own goes before it
 *	parent                     the caller's session; absent: a person's or a timer's run
 *	chain                      agents from the person's down to the caller
 *	bounds                     entries of agents (setup.entries): no right beyond any of them
 *	asks                       kinds that those above it let it ask for (policy.h); absent: none
 *	ask                        kinds that the person named for the whole run, beside its role's
 *	budget                     tokens, money, seconds, answers: at most these; 0 or absent: no bound
 */
#pragma once
#include <stdbool.h>

bool delegate_role_is(const char *name);
/* An exit code. Everything but the request comes from nowhere: the environment is empty. */
int delegate_role_run(int argc, char **argv);
