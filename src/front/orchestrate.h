/*
 * orchestrate: the front's part of orchestration: the list of agents, and the parts of
 * our setup that the process of a delegate gets.
 */
#pragma once
#include "agent/tools/orchestra.h"
#include "base/err.h"
#include "front/setup.h"

#include <stdbool.h>

struct orchestrate;

struct orchestrate_options {
	struct setup *setup;         /* setup_session has not taken its policy yet */
	const struct value *request; /* that started us (delegate_role.h), or NULL */
	const char *model;           /* of this run; NULL: the embedded replay */
	bool alone;    /* there is no run (orchestra.h); the members below are not used */
	bool answered; /* questions of delegates get an answer */
	bool counts_answers; /* the person limits the answers of all agents together */
};

/*
 * Open the orchestra for an agent that has any of its tools: the tools of SETUP then
 * work. For all other agents *MADE is NULL.
 */
bool orchestrate_open(const struct orchestrate_options *options,
		      struct orchestrate **made, struct err *err);
/* Call it after the end of the session. NULL is fine. */
void orchestrate_close(struct orchestrate *orchestrate);

/* PROMPT, with the list of agents when the agent may delegate; borrowed. */
const char *orchestrate_prompt(const struct orchestrate *orchestrate, const char *prompt);

void orchestrate_set_agent(struct orchestrate *orchestrate, struct agent *agent,
			   struct session *session, struct recorder *recorder);

/*
 * The request of a run in SETUP's workspace, filled from the environment and SETUP's
 * configuration. It has no agent, no task, and no members that come from a caller.
 */
struct value *orchestrate_request(const struct setup *setup, const char *model);
