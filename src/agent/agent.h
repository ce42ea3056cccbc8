/*
 * agent: the loop. One turn is: conversation -> model -> text and calls -> one
 * session_start for each call -> results -> again, until the model stops, calls
 * generate_patch, a limit is reached or the person interrupts. A failed or refused call
 * is a result that the model reads; only a broken model service or journal ends a turn
 * early, and then too every call has its answer in the record.
 *
 * How a front puts it together (the recorder first: the session's events pass through
 * it):
 *
 *	recorder = recorder_new(journal, screen_sink(screen));
 *	session_options.sink = recorder_sink(recorder);
 *	session_open(&session_options, &session, &err);
 *	agent_open(&(struct agent_options){.session = session, …}, &agent, &err);
 *	agent_submit(agent, "fix the test", &outcome, &err);
 *	agent_close(agent);
 *	session_close(session);
 *	recorder_free(recorder);
 *
 * A circle is seen before a result is told (request.ending): the agent compares the
 * call and its result with earlier ones, and with what the session knows of its own
 * writing (session_writes). It then adds a sentence to the result, answers a read from
 * the earlier one, or ends the turn.
 *
 * AGENTS.md is read in the cell by tools/read_project.c; this module puts it into the
 * prompt.
 */
#pragma once

#include "agent/history.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "model/model.h"
#include "session/session.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent;

/*
 * All borrowed for the life of the agent. The limits are those of the session's policy.
 */
struct agent_options {
	struct session *session;
	struct model *model;
	struct recorder *recorder; /* the one whose sink the session was opened with */
	const char *name;          /* of the role: "default" */
	const char *prompt;        /* of the role; NULL: none. The workspace is added. */
	const char *parent; /* id of the session that delegated to this one; NULL: none */
	/* of the role: name -> command, or an object (config_role.checks); NULL: none */
	const struct value *checks;
	/*
	 * Id of the session in the recorder's journal that goes on; NULL: a new one. The
	 * session is then this process's (journal_claim), and has the workspace it had.
	 */
	const char *resume;
	/*
	 * The person interrupts by making it readable (the same descriptor as
	 * session_options.cancel_fd). It is read empty after an interrupt, so that the
	 * next turn starts fresh. Pipe, eventfd or signalfd, not blocking; -1: none.
	 */
	int cancel_fd;
};

/*
 * Begins the record (EVENT_SESSION_BEGAN) or resumes it. A resumed session has its old
 * conversation and its old marks of the files that were read. Calls that were under way
 * are answered with a sentence that says so (EVENT_SESSION_RESUMED, EVENT_TOOL_ENDED).
 * Then reads the project's instructions for agents (EVENT_INSTRUCTIONS). ERR: the journal
 * failed (EBUSY: another process has the session), cancel_fd cannot be polled, money is
 * limited but the price of the model is unknown, or the policy forbids a check of the
 * role.
 */
bool agent_open(const struct agent_options *options, struct agent **agent, struct err *err);
void agent_close(struct agent *agent); /* NULL is fine */

/*
 * Between turns: go on with another session, model, name or prompt. The recorder,
 * cancel_fd and the conversation stay the same, and nothing is resumed. Objects that
 * OPTIONS no longer names may be closed afterwards. On failure nothing has changed.
 */
bool agent_change(struct agent *agent, const struct agent_options *options, struct err *err);

/*
 * Record SENTENCE as an EVENT_NOTICE, which the front shows. TO_MODEL: SENTENCE joins the
 * conversation too. False when SENTENCE could not be recorded.
 */
bool agent_notice(struct agent *agent, const char *sentence, bool to_model, struct err *err);

/* Why a turn ended. */
enum agent_reason {
	/* no usable answer; the session is consistent and may go on */
	AGENT_MODEL_FAILED,
	AGENT_STOPPED,    /* the model had no more calls */
	AGENT_PATCH,      /* the model handed over with generate_patch */
	AGENT_ITERATIONS, /* the limits: */
	AGENT_TOKENS,
	AGENT_MONEY,
	AGENT_WALL,
	AGENT_SHELL,
	AGENT_REPEATS,   /* the same call again and again */
	AGENT_TIMEOUTS,  /* one timeout after the other */
	AGENT_CHECKS,    /* the role's checks did not become green */
	AGENT_CANCELLED, /* by the person */
};
const char *agent_reason_name(enum agent_reason reason); /* "stopped", "model_failed" */

struct agent_outcome {
	enum agent_reason reason;
	char sentence[ERR_TEXT_MAX]; /* what ended the turn; "" when it simply stopped */
	uint64_t iterations;         /* answers of the model */
	struct model_usage usage;    /* summed */
	double seconds, shell_seconds;
	/* of the last program that ran in a call; -1: none, or a signal */
	int last_exit_code;
	size_t changed; /* files in the hand-over */
};

/*
 * One turn. True with *OUTCOME filled whatever became of it, model failures and
 * interrupts included; its sentence has then been an EVENT_NOTICE. False when an event
 * could not be recorded: nothing was run after that.
 */
bool agent_submit(struct agent *agent, const char *text, struct agent_outcome *outcome,
		  struct err *err);

/*
 * The rest of the limits of the turn under way, for a delegate that works for it; 0: no
 * such limit. Between turns nothing is limited.
 */
struct agent_budget {
	bool used_up;
	uint64_t tokens, answers;
	double money, seconds;
};
void agent_left(const struct agent *agent, struct agent_budget *left);
/*
 * A delegate used USAGE and ANSWERS for the turn under way: they count as the turn's own.
 */
void agent_spent(struct agent *agent, const struct model_usage *usage, uint64_t answers);

/*
 * Sees a model that goes round in circles. A call makes progress unless the same call
 * gave the same result before and no file changed since. Calls in a row that make none
 * are a circle: the model is told of it in the results, then by a sentence of its own,
 * then the turn ends. Timeouts in a row are treated alike. Pure: the caller tells it of
 * written files.
 */

enum {
	/* A circle has at most so many different calls; a longer one is honest work more often. */
	GUARD_CIRCLE = 3,
	/* A circle of several calls may be so much longer than the same call over and over. */
	GUARD_CIRCLE_MORE = 2,
	/* Timeouts in a row: a second try is honest work, and so is a third with another limit. */
	GUARD_TIMEOUTS_TOLD = 3,
	GUARD_TIMEOUTS_END = 5,
};

enum guard_verdict {
	GUARD_GO,
	GUARD_SAY,      /* the model is to read a sentence by itself */
	GUARD_REPEATS,  /* the turn is over, for this reason */
	GUARD_TIMEOUTS, /* or for this one */
};

/* One call, as the guard sees it. */
struct guard_call {
	const char *tool;
	char key[HASH_HEX + 1]; /* of its name and its arguments (guard_name) */
	bool only_reads;        /* it may be answered from before */
	bool waits;       /* it waits for a job, which is progress whatever it says */
	uint64_t writers; /* session_writes: when it began */
};

/* One of the last different calls, and its result. */
struct guard_seen {
	char key[HASH_HEX + 1], result[HASH_HEX + 1]; /* key "": none */
	uint64_t found, writers; /* session_writes: when its result was there */
	unsigned count;          /* of this call with this result, in this circle */
	bool circles;            /* it came without progress in this circle */
	uint64_t base;           /* of one that circles: the number of its call before */
	uint64_t last;           /* the number of its last call; 0: there is none */
	struct value *answer; /* its result, as events have it; of one that only reads */
};

/* Zero, with its two limits (0: none), is a fresh one. */
struct guard {
	uint64_t warn, stop;
	struct guard_seen seen[GUARD_CIRCLE];
	uint64_t calls;
	uint64_t idle; /* calls in a row without progress */
	uint64_t timeouts;
	bool said; /* the sentence by itself, of this circle */
	enum guard_verdict verdict;
	struct err why; /* the sentence of VERDICT */
};
void guard_fini(struct guard *guard);

/*
 * Name CALL. Arguments are equal when they are as JSON (order and blanks do not count), else by
 * their bytes.
 */
void guard_name(struct guard_call *call, const char *tool, const char *arguments);

/*
 * CALL is about to run. Returns the earlier answer, with a remark, when CALL would only
 * read the same again: CALL is counted and must not run. Returns NULL when CALL must run.
 * The caller frees the answer.
 */
struct value *guard_answer(struct guard *guard, const struct guard_call *call,
			   const struct session_writes *writes);

/* CALL ended with RESULT. Adds to RESULT any remark that the model must read. */
void guard_result(struct guard *guard, const struct guard_call *call,
		  const struct session_writes *writes, struct tool_result *result);

/* The verdict on all results so far; WHY receives its sentence. */
enum guard_verdict guard_verdict(const struct guard *guard, struct err *why);
/* The sentence of GUARD_SAY, once, when it is due. */
bool guard_take_sentence(struct guard *guard, struct err *sentence);

/*
 * How much of a turn is left: answers, tokens, money, wall time, time in commands. A
 * step is one answer of the model and the calls in it. The step after which a limit will
 * be reached is known beforehand (by count, or because what is left is less than the
 * step before took), so that the model can be told in time. Pure: the clock is the
 * caller's.
 */

struct limits {
	/* in; 0: no such limit */
	uint64_t iterations_max, tokens_max;
	double money_max; /* US dollars */
	double wall_s, shell_s;
	int64_t began_ms;
	/* so far */
	uint64_t iterations, tokens;
	double money, shell_seconds;
	bool money_is_lost; /* of an answer nobody knows what it cost */
	/* of the step before */
	uint64_t step_tokens;
	double step_money, step_seconds, step_shell_seconds;
	/* at the beginning of the step under way */
	uint64_t at_tokens;
	int64_t at_ms;
	double at_money, at_shell_seconds;
	/* the limit the model was told of; AGENT_STOPPED: none */
	enum agent_reason announced;
};

enum limits_answer { LIMITS_GO, LIMITS_LAST, LIMITS_STOP };

void limits_init(struct limits *limits, int64_t now_ms);

/*
 * May another step begin? LAST: yes, and SENTENCE is what the model must be told. STOP:
 * no, REASON says which limit and SENTENCE tells the person. A step that began is
 * counted.
 */
enum limits_answer limits_step(struct limits *limits, int64_t now_ms,
			       enum agent_reason *reason, struct buf *sentence);

/*
 * Seconds that a call may still take, one that RUNS commands or another; INFINITY: any.
 */
double limits_left_s(const struct limits *limits, int64_t now_ms, bool runs);

/* Monotonic moment the turn must be over; CLOCK_NEVER without a limit. */
int64_t limits_deadline_ms(const struct limits *limits);

/*
 * The structures that the files of the loop share: the agent and the turn under way.
 * agent.c calls the other files and none of them calls it; agent.c calls none of them.
 * ask.c asks the model, history.c has the model summarise a conversation that became too
 * long, calls.c runs the calls of the model, agent.c makes the change a patch,
 * resume.c reads the record of an earlier process, agent.c reads the project's
 * files for agents, and checks.h checks the work. Not for fronts.
 */

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
	unsigned syntax_missing; /* languages whose tool is not in the cell (checks.c) */
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

/*
 * One question and its answer, recorded as EVENT_MESSAGE; the answer is then the last
 * message of the history. A model that fails ends the turn and is not an error.
 */
bool agent_ask_model(struct agent *agent, struct turn *turn, struct err *err);

/* Tokens of the next request, as far as they can be known. */
uint64_t agent_tokens(const struct agent *agent);

/*
 * Have the older part of the conversation summarised when too little of the model's context
 * is free (history.h). A model that fails ends the turn and is not an error.
 */
bool agent_compact_when_due(struct agent *agent, struct turn *turn, struct err *err);
/* The service said that it is too long. *SHORTER: now it is less, or the turn is over. */
bool agent_compact_overflow(struct agent *agent, struct turn *turn, bool *shorter,
			    struct err *err);

/* The answer to CALL of TOOL, which has none of its own. */
bool agent_calls_answer(struct agent *agent, const char *call, const char *tool,
			enum result_status status, const char *text, struct err *err);

/* Run the calls of the last message; each has its result in the record afterwards. */
bool agent_calls_run(struct agent *agent, struct turn *turn, struct err *err);

/* The patch that generate_patch made is the turn's. */
void agent_handover_take(struct turn *turn, const struct tool_result *result);
/* DETAILS of a call of delegate_agent: the files that it changed are the turn's to count. */
void agent_handover_take_delegated(struct turn *turn, const struct value *details);
