/*
 * limits: how much of a turn is left: answers, tokens, money, wall time, time in commands. A
 * step is one answer of the model and the calls in it. The step after which a limit
 * will be reached is known beforehand (by count, or because what is left is less than
 * the step before took), so that the model can be told in time. Pure: the clock is the
 * caller's.
 */
#pragma once
#include "agent/agent.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

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
