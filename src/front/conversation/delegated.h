/*
 * delegated: the process of one delegate, the other end of agent/delegate.h. It receives its
 * request over a descriptor and narrows its rights by those of each agent above it
 * (setup_serve_within). Schedules run by the same process, and that of a session of an editor
 * begins as it does.
 *
 * It works on one prompt for one agent as `run --json` does. The request is an object:
 *
 * 	workspace      as -C
 * 	config         as --config; may be absent
 * 	level          as --minimum-level; may be absent
 * 	environment    name -> value: the variables of the caller, with its API keys
 * 	agent          the name of the agent
 * 	task           its prompt
 * 	model          the caller's model; the agent's own model goes before it
 * 	asked_model    goes before both; absent: none
 * 	named_model    true: without a named model nothing is done; else the recording is played
 * 	parent         the caller's session; absent: a person's or a timer's run
 * 	chain          the agents from the person's down to the caller
 * 	bounds         entries of agents (setup.entries); each limits the delegate's rights
 * 	asks           kinds (policy.h) that all agents above let it ask for; absent: none
 * 	mode           that of the caller (policy/policy.h), below which this one does not work;
 * 	               absent: any
 * 	ask            kinds that the person named for the whole run, beside those of the role
 * 	layer          write into a layer of this name (front/review/writer.h); absent: none
 * 	over           the layers below, the caller's first (view/below.h); absent: none
 * 	budget         the most tokens, money, seconds, answers; 0 or absent: no bound
 */
#pragma once

#include "base/value.h"

#include <stdbool.h>

/*
 * Is this the process of a delegate? Then run the delegate; *CODE becomes the exit code. The
 * process starts with an empty environment: all it knows is in the request.
 */
bool delegated_role(int argc, char **argv, int *code);

/*
 * The beginning of a process that our program has started to work for it, with a request
 * on a descriptor: read the numbers of COUNT descriptors behind argv[0] into FDS. The first
 * four are the request, the output, the errors and the input of this process, and the last
 * one is the caller, with which this process dies. FDS stay open, but for these five. The
 * environment becomes that of the request. Returns an exit code; the caller frees *REQUEST.
 */
int delegated_begin(int argc, char **argv, int *fds, int count, struct value **request);
