/*
 * delegate_role: the process of one delegate (agent/delegate.h). It works on one prompt
 * for one agent as `run --json` does, but reads a request from a descriptor. The request
 * is an object:
 *
 *	workspace      as -C
 *	config         as --config; may be absent
 *	level          as --minimum-level; may be absent
 *	environment    name -> value: the variables of the caller, with its API keys
 *	agent          the name of the agent
 *	task           its prompt
 *	model          the caller's model; the agent's own model goes before it
 *	parent         the caller's session; absent: a person's or a timer's run
 *	chain          the agents from the person's down to the caller
 *	bounds         entries of agents (setup.entries); each limits the delegate's rights
 *	asks           kinds (policy.h) that all agents above let it ask for; absent: none
 *	ask            kinds that the person named for the whole run, beside those of the role
 *	budget         the most tokens, money, seconds, answers; 0 or absent: no bound
 */
#pragma once
#include <stdbool.h>

bool delegate_role_is(const char *name);
/*
 * Run the delegate and return an exit code. The process starts with an empty environment:
 * all it knows is in the request.
 */
int delegate_role_run(int argc, char **argv);
