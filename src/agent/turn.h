/*
 * turn: the structures that the files of the loop share: the agent and the turn under
 * way. agent.c calls the other files and none of them calls it; turn.c calls none of
 * them. ask.c asks the model, compact.c has the model summarise a conversation that
 * became too long, calls.c runs the calls of the model, handover.c makes the change a
 * patch, resume.c reads the record of an earlier process, instructions.c reads the
 * project's files for agents, and checks.h checks the work. Not for fronts.
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
	char **schemas;           /* of these, printed */
	size_t tool_count;
	uint64_t last_id;   /* of the ids that we gave */
	int stop_fd;        /* epoll over the two below: one descriptor for model_ask */
	int timer_fd;       /* the turn's end by wall time */
	size_t fixed_bytes; /* of each request: the system prompt and the tools */
	struct turn *turn;  /* under way; NULL: none */
	unsigned syntax_missing; /* languages whose tool is not in the cell (checks_syntax.c) */
};

struct turn {
	struct limits limits;
	struct guard guard;
	struct agent_outcome *outcome;
	const char *text; /* what the person said */
	bool over;
	bool looked;         /* at the workspace as it is before the first command */
	unsigned fruitless;  /* answers in a row without a call that were empty or cut */
	struct value *patch; /* details of the last generate_patch that was done; owned */
	struct value *delegated; /* path -> the file, of those that delegates changed; owned */
	struct value *edited; /* paths that calls of this answer changed; owned (checks.h) */
	struct value *checks;  /* name -> how it ended last; owned */
	unsigned check_rounds; /* of repair, that were begun */
	bool check_cancelled;
};

extern const char turn_patch_tool[];  /* the tool that hands over */
extern const char turn_interrupted[]; /* the sentence for it */

/* The turn is over; the first reason stays. SENTENCE NULL: nothing to say. */
void turn_end(struct turn *turn, enum agent_reason reason, const char *sentence);

/* The model failed: the turn is over. */
void turn_failed(struct agent *agent, struct turn *turn, const struct err *why);
/* For model_sink, with the agent as context: a notice. */
void turn_retry(void *context, const char *why, double wait_s);

/* SUM becomes what both have used; money that is not known once is not known at all. */
void turn_sum_usage(struct model_usage *sum, const struct model_usage *usage);
/* USAGE is part of what the turn has used. */
void turn_add_usage(struct turn *turn, const struct model_usage *usage);
/* Tokens as events tell them; the caller frees it. */
struct value *turn_usage_value(const struct model_usage *usage);
/* Has the person interrupted? Stays true until the end of the turn. */
bool agent_interrupted(const struct agent *agent);

/* An id that no call of the session has. */
enum { AGENT_ID = 24 };
void agent_new_id(struct agent *agent, char id[AGENT_ID]);
/* The number in an id of our form; UINT64_MAX: it is none. Up to last_id they are taken. */
uint64_t agent_id_number(const char *id);

/* EVENT_SESSION_BEGAN or EVENT_SESSION_RESUMED, TEXT may be NULL. */
bool agent_record_begin(struct agent *agent, enum event_kind kind, const char *text,
			struct err *err);

/*
 * One question and its answer, recorded as EVENT_MESSAGE; the answer is then the last
 * message of the history. A model that fails ends the turn and is not an error.
 */
bool ask_model(struct agent *agent, struct turn *turn, struct err *err);

/* Tokens of the next request, as far as they can be known. */
uint64_t agent_tokens(const struct agent *agent);

/*
 * Have the older part of the conversation summarised when too little of the model's context
 * is free (compaction.h). A model that fails ends the turn and is not an error.
 */
bool compact_when_due(struct agent *agent, struct turn *turn, struct err *err);
/* The service said that it is too long. *SHORTER: now it is less, or the turn is over. */
bool compact_overflow(struct agent *agent, struct turn *turn, bool *shorter,
		      struct err *err);

/*
 * Make the history of what the journal holds of the session options.resume, and answer the
 * calls that have no result: one that began may have run, one that did not has not.
 */
bool resume_session(struct agent *agent, struct err *err);

/* Read the project's instructions, inside the cell; an event when they are new. */
bool instructions_read(struct agent *agent, struct err *err);
/* Append what the model is told of them: nothing when there are none. */
void instructions_add(const struct agent *agent, struct buf *text);

/* The answer to CALL of TOOL, which has none of its own. */
bool calls_answer(struct agent *agent, const char *call, const char *tool,
		  enum result_status status, const char *text, struct err *err);

/* Run the calls of the last message; each has its result in the record afterwards. */
bool calls_run(struct agent *agent, struct turn *turn, struct err *err);

/* The patch that generate_patch made is the turn's. */
void handover_take(struct turn *turn, const struct tool_result *result);
/* DETAILS of a call of delegate_agent: the files that it changed are the turn's to count. */
void handover_take_delegated(struct turn *turn, const struct value *details);
/* Make the patch when something was changed since the last one. */
bool handover_make(struct agent *agent, struct turn *turn, struct err *err);
/* Put the changed files and the patch into DATA of EVENT_TURN_ENDED, and count them. */
void handover_describe(struct agent *agent, struct turn *turn, struct value *data);
