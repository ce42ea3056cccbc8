/* limits: what is left of a turn. */
#include "agent/limits.h"

#include "base/clock.h"

#include <inttypes.h>
#include <math.h>

static const double ms_per_s = 1000;

void limits_init(struct limits *limits, int64_t now_ms)
{
	limits->began_ms = now_ms;
	limits->at_ms = now_ms;
	limits->announced = AGENT_STOPPED;
}

static double limits_elapsed_s(const struct limits *limits, int64_t now_ms)
{
	return (double)(now_ms - limits->began_ms) / ms_per_s;
}

static void limits_describe(const struct limits *limits, enum agent_reason reason,
			    struct buf *sentence)
{
	switch (reason) {
	case AGENT_ITERATIONS:
		buf_addf(sentence, "%" PRIu64 " answers of the model",
			 limits->iterations_max);
		break;
	case AGENT_TOKENS:
		buf_addf(sentence, "%" PRIu64 " tokens, %" PRIu64 " used",
			 limits->tokens_max, limits->tokens);
		break;
	case AGENT_MONEY:
		buf_addf(sentence, "%.6g US dollars, %.4f spent%s", limits->money_max,
			 limits->money,
			 limits->money_is_lost ? ", and an answer whose tokens the service "
						 "did not count"
					       : "");
		break;
	case AGENT_WALL:
		buf_addf(sentence, "%.0f seconds", limits->wall_s);
		break;
	default:
		buf_addf(sentence, "%.0f seconds in commands, %.0f used", limits->shell_s,
			 limits->shell_seconds);
		break;
	}
}

static bool limits_over(double used, double next, double max)
{
	return max > 0 && used + next >= max;
}

/* The first limit that is reached when NEXT more of each is used; AGENT_STOPPED: none. */
static enum agent_reason limits_reached(const struct limits *limits, int64_t now_ms,
					bool after_another)
{
	uint64_t more = after_another ? 1 : 0;
	uint64_t tokens = after_another ? limits->step_tokens : 0;
	double money = after_another ? limits->step_money : 0;
	double seconds = after_another ? limits->step_seconds : 0;
	double shell = after_another ? limits->step_shell_seconds : 0;

	if (limits->iterations_max > 0 && limits->iterations + more >= limits->iterations_max)
		return AGENT_ITERATIONS;
	if (limits->tokens_max > 0 && limits->tokens + tokens >= limits->tokens_max)
		return AGENT_TOKENS;
	if (limits_over(limits->money, money, limits->money_max) ||
	    (limits->money_max > 0 && limits->money_is_lost))
		return AGENT_MONEY;
	if (limits_over(limits_elapsed_s(limits, now_ms), seconds, limits->wall_s))
		return AGENT_WALL;
	if (limits_over(limits->shell_seconds, shell, limits->shell_s))
		return AGENT_SHELL;
	return AGENT_STOPPED;
}

static void limits_close_step(struct limits *limits, int64_t now_ms)
{
	limits->step_tokens = limits->tokens - limits->at_tokens;
	limits->step_money = limits->money - limits->at_money;
	limits->step_seconds = (double)(now_ms - limits->at_ms) / ms_per_s;
	limits->step_shell_seconds = limits->shell_seconds - limits->at_shell_seconds;
	limits->at_tokens = limits->tokens;
	limits->at_money = limits->money;
	limits->at_ms = now_ms;
	limits->at_shell_seconds = limits->shell_seconds;
}

enum limits_answer limits_step(struct limits *limits, int64_t now_ms,
			       enum agent_reason *reason, struct buf *sentence)
{
	limits_close_step(limits, now_ms);
	*reason = limits_reached(limits, now_ms, false);
	if (*reason == AGENT_STOPPED)
		*reason = limits->announced;
	if (*reason != AGENT_STOPPED) {
		buf_adds(sentence, "The limit of this run is reached (");
		limits_describe(limits, *reason, sentence);
		buf_adds(sentence, "); a new prompt goes on from here.");
		return LIMITS_STOP;
	}
	limits->announced = limits_reached(limits, now_ms, true);
	limits->iterations++;
	if (limits->announced == AGENT_STOPPED)
		return LIMITS_GO;
	buf_adds(sentence, "This is the last step of this run (limit: ");
	limits_describe(limits, limits->announced, sentence);
	buf_adds(sentence,
		 "). Calls of this answer still run, but you will not see their results. "
		 "Finish now: say what is done and what is left.");
	return LIMITS_LAST;
}

double limits_left_s(const struct limits *limits, int64_t now_ms, bool runs)
{
	double left = INFINITY;

	if (limits->wall_s > 0)
		left = limits->wall_s - limits_elapsed_s(limits, now_ms);
	if (runs && limits->shell_s > 0 && limits->shell_s - limits->shell_seconds < left)
		left = limits->shell_s - limits->shell_seconds;
	return left > 0 ? left : 0;
}

int64_t limits_deadline_ms(const struct limits *limits)
{
	if (limits->wall_s <= 0)
		return CLOCK_NEVER;
	return limits->began_ms + (int64_t)(limits->wall_s * ms_per_s);
}
