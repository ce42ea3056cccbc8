/*
 * orchestrate: the front's part of orchestration: which agents there are, and what a delegate's
 * process is handed of this one's setup.
 */
#pragma once
#include "agent/tools/orchestra.h"
#include "base/err.h"
#include "front/setup.h"

#include <stdbool.h>

struct orchestrate;

struct orchestrate_options {
	struct setup *setup; /* its policy is still its own */
	const struct value *request; /* by which this process was started (delegate_role.h); NULL: a person */
	const char *model; /* of this run; NULL: the embedded replay */
	bool alone;    /* there is no run (orchestra.h); the rest is of no account then */
	bool answered; /* somebody answers what delegates ask */
	bool counts_answers; /* the person said how many there may be of all */
};

/*
 * For an agent that has any of the orchestra's tools: setup->tools has them with somebody
 * behind. *MADE is NULL for all others.
 */
bool orchestrate_open(const struct orchestrate_options *options,
		      struct orchestrate **made, struct err *err);
/* After the session. NULL is fine. */
void orchestrate_close(struct orchestrate *orchestrate);

/* The prompt of the role with the agents there are, for one that may delegate; borrowed. */
const char *orchestrate_prompt(const struct orchestrate *orchestrate, const char *prompt);

void orchestrate_set_agent(struct orchestrate *orchestrate, struct agent *agent,
			   struct session *session, struct recorder *recorder);

/*
 * The request of a run in FOLDER as the environment and SETUP's configuration have it, without
 * agent, task and what is of a caller.
 */
struct value *orchestrate_request(const struct setup *setup, const char *model);
