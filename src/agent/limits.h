/*
 * limits: what ends a turn beside the model: the limits of the policy, and a model that goes round
 * in circles. Pure: the caller gives the time, and reports written files.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/value.h"
#include "session/session.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stdint.h>

/* Why a turn ended. */
enum agent_reason {
	/* no usable answer; the session is consistent and may go on */
	AGENT_MODEL_FAILED,
	AGENT_STOPPED, /* the model had no more calls */
	AGENT_PATCH,   /* the model handed over with generate_patch */
	AGENT_PLAN, /* the model has presented a plan, and the person has not agreed yet */
	AGENT_ITERATIONS, /* the limits: */
	AGENT_TOKENS,
	AGENT_MONEY,
	AGENT_WALL,
	AGENT_SHELL,
	AGENT_REPEATS,   /* the same call again and again */
	AGENT_TIMEOUTS,  /* one timeout after the other */
	AGENT_CHECKS,    /* the role's checks did not become green */
	AGENT_HOOK,      /* a hook has refused the prompt, or ended the turn */
	AGENT_CANCELLED, /* by the person */
};

/*
 * Detects a model that goes round in circles. A call makes no progress when the same call
 * gave the same result before and no file has changed since. Several such calls in a row
 * are a circle: the results tell the model about it, then a sentence of its own does, and
 * then the turn ends. Timeouts in a row are treated in the same way. Pure: the caller
 * reports written files.
 */

enum {
	/*
	 * The most different calls in a circle. A longer repetition usually is honest
	 * work.
	 */
	CIRCLE_CALLS = 3,
	/*
	 * A circle of several calls may have so many calls more than a repetition of one
	 * call.
	 */
	CIRCLE_CALLS_MORE = 2,
	/*
	 * Timeouts in a row. A second try is honest work, and so is a third with another
	 * limit.
	 */
	CIRCLE_TIMEOUTS_TOLD = 3,
	CIRCLE_TIMEOUTS_END = 5,
};

enum circle_verdict {
	CIRCLE_GO,
	CIRCLE_SAY,      /* the model must read a sentence of its own */
	CIRCLE_REPEATS,  /* the turn is over because of repeated calls */
	CIRCLE_TIMEOUTS, /* the turn is over because of timeouts */
};

/* One call, as the detector of circles sees it. */
struct circle_call {
	const char *tool;
	char key[HASH_HEX + 1]; /* of its name and its arguments (circle_name) */
	bool only_reads;        /* its old answer may be given again */
	bool waits;       /* it waits for a job, which is progress with any result */
	uint64_t writers; /* of session_writes, when the call began */
};

/* One of the last different calls, and its result. */
struct circle_seen {
	char key[HASH_HEX + 1], result[HASH_HEX + 1]; /* key "": the place is free */
	uint64_t found, writers; /* of session_writes, when the result was there */
	unsigned count;          /* of this call with this result, in this circle */
	bool circles;            /* it came without progress in this circle */
	/* when it circles: the number of the same call before it */
	uint64_t base;
	uint64_t last;        /* the number of its last call; 0: there was none */
	struct value *answer; /* its result in the form of events, when it only reads */
};

/* The detector. A new one is all zero, except its two limits (0: none). */
struct circle {
	uint64_t warn, stop;
	struct circle_seen seen[CIRCLE_CALLS];
	uint64_t calls;
	uint64_t idle; /* calls in a row without progress */
	uint64_t timeouts;
	bool said; /* the sentence of its own was given for this circle */
	enum circle_verdict verdict;
	struct err why; /* the sentence of VERDICT */
};
void circle_fini(struct circle *circle);

/*
 * Name CALL by its tool and arguments. Arguments are compared as JSON (order and blanks
 * do not count), or by their bytes when they are no JSON.
 */
void circle_name(struct circle_call *call, const char *tool, const char *arguments);

/*
 * CALL is about to run. Returns the earlier answer, with a remark, when CALL would only
 * read the same again: CALL is counted and must not run. Returns NULL when CALL must run.
 * The caller frees the answer.
 */
struct value *circle_answer(struct circle *circle, const struct circle_call *call,
			    const struct session_writes *writes);

/* CALL ended with RESULT. Adds to RESULT any remark that the model must read. */
void circle_result(struct circle *circle, const struct circle_call *call,
		   const struct session_writes *writes, struct tool_result *result);

/* The verdict on all results so far; WHY receives its sentence. */
enum circle_verdict circle_verdict(const struct circle *circle, struct err *why);
/* When the verdict is CIRCLE_SAY: take its sentence, once. False: no sentence is due. */
bool circle_take_sentence(struct circle *circle, struct err *sentence);

/*
 * How much of a turn is left: answers, tokens, money, wall time, time in commands. A step
 * is one answer of the model and the calls in it. A limit that the next step will reach
 * is known before that step (by count, or because less is left than the last step took),
 * so that the model can be told in time. Pure: the caller gives the time.
 */

struct limits {
	/* set by the owner; 0: no such limit */
	uint64_t iterations_max, tokens_max;
	double money_max; /* US dollars */
	double wall_s, shell_s;
	int64_t began_ms;
	/* used so far */
	uint64_t iterations, tokens;
	double money, shell_seconds;
	bool money_is_lost; /* the price of an answer is not known */
	/* used by the step before */
	uint64_t step_tokens;
	double step_money, step_seconds, step_shell_seconds;
	/* counts at the beginning of the step under way */
	uint64_t at_tokens;
	int64_t at_ms;
	double at_money, at_shell_seconds;
	/* the limit that the model was told of; AGENT_STOPPED: none */
	enum agent_reason announced;
};

enum limits_answer { LIMITS_GO, LIMITS_LAST, LIMITS_STOP };

void limits_init(struct limits *limits, int64_t now_ms);

/*
 * May another step begin? LIMITS_LAST: yes, and SENTENCE is for the model. LIMITS_STOP:
 * no, REASON names the limit and SENTENCE is for the person. A step that began is
 * counted.
 */
enum limits_answer limits_step(struct limits *limits, int64_t now_ms,
			       enum agent_reason *reason, struct buf *sentence);

/*
 * Seconds that a call may still take; RUNS: it runs commands. INFINITY: there is no
 * limit.
 */
double limits_left_s(const struct limits *limits, int64_t now_ms, bool runs);

/* The monotonic time at which the turn must be over; CLOCK_NEVER without a limit. */
int64_t limits_deadline_ms(const struct limits *limits);
