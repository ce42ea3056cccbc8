/*
 * turn: what the files of the loop share: the agent and the turn under way. agent.c
 * begins and ends turns, ask.c asks the model, calls.c runs what it asked for,
 * handover.c makes the change a patch. Not for fronts.
 */
#pragma once
#include "agent/agent.h"
#include "agent/guard.h"
#include "agent/history.h"
#include "agent/limits.h"

struct agent {
	struct agent_options options;
	struct history history;
	struct model_tool *tools; /* what the model is offered */
	struct value **schemas;   /* of these */
	size_t tool_count;
	uint64_t last_id; /* of the ids that we gave */
	int stop_fd;      /* epoll over the two below: one descriptor for model_ask */
	int timer_fd;     /* the turn's end by wall time */
};

struct turn {
	struct limits limits;
	struct guard guard;
	struct agent_outcome *outcome;
	const char *text; /* what the person said */
	bool over;
	unsigned fruitless;  /* answers in a row without a call that were empty or cut */
	struct value *patch; /* details of the last generate_patch that was done; owned */
};

extern const char turn_patch_tool[];  /* the tool that hands over */
extern const char turn_interrupted[]; /* the sentence for it */

/* The turn is over; the first reason stays. SENTENCE NULL: nothing to say. */
void turn_end(struct turn *turn, enum agent_reason reason, const char *sentence);

/* Has the person interrupted? Stays true until the end of the turn. */
bool agent_interrupted(const struct agent *agent);

/* An id that no call of the session has. */
enum { AGENT_ID = 24 };
void agent_new_id(struct agent *agent, char id[AGENT_ID]);

bool agent_notice(struct agent *agent, const char *sentence, bool to_model, struct err *err);

/*
 * One question and its answer, recorded as EVENT_MESSAGE; the answer is then the last
 * message of the history. A model that fails ends the turn and is not an error.
 */
bool ask_model(struct agent *agent, struct turn *turn, struct err *err);

/* Run the calls of the last message; each has its result in the record afterwards. */
bool calls_run(struct agent *agent, struct turn *turn, struct err *err);

/* The patch that generate_patch made is the turn's. */
void handover_take(struct turn *turn, const struct tool_result *result);
/* Make the patch when something was changed since the last one. */
bool handover_make(struct agent *agent, struct turn *turn, struct err *err);
/* Put the changed files and the patch into DATA of EVENT_TURN_ENDED, and count them. */
void handover_describe(struct agent *agent, struct turn *turn, struct value *data);
