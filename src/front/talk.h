/*
 * talk: one prompt from the command line to its end: model, journal, session, agent and
 * whoever shows the events are put together, used, and taken apart.
 */
#pragma once
#include "agent/agent.h"
#include "front/screen.h"
#include "front/setup.h"
#include "model/model.h"

#include <stdbool.h>

struct talk {
	const char *prompt;
	struct model_options model;
	bool json; /* events as JSON lines instead of the screen */
	bool kept; /* in the journal of the user's sessions */
	const struct screen_options *screen; /* NULL: what standard output can show */
};

/*
 * The environment's part of the model: GLOVEBOX_MODEL, GLOVEBOX_BASE_URL,
 * OPENAI_API_KEY, the built-in replay when nothing is set; NAME (of a flag, or NULL)
 * and ROLE's model before it. The texts are borrowed from the environment.
 */
bool talk_model(const char *name, const struct config_role *role,
		struct model_options *model, struct err *err);

/* The text of a file that the program brings along; empty when there is none. */
struct str talk_embedded(const char *name);

/*
 * An exit code; complaints have been printed. OUTCOME is filled when the turn was begun
 * (else it is zero).
 */
int talk_run(const struct talk *talk, struct setup *setup, struct agent_outcome *outcome);
