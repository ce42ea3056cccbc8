/* budget: the limits that a turn shares with its delegates. */
#include "agent/turn.h"
#include "base/clock.h"

#include <math.h>

static uint64_t rest(uint64_t most, uint64_t used)
{
	return most > used ? most - used : 0;
}

void agent_left(const struct agent *agent, struct agent_budget *left)
{
	const struct limits *limits = agent->turn ? &agent->turn->limits : NULL;
	double seconds;

	*left = (struct agent_budget){0};
	if (!limits)
		return;
	left->tokens = rest(limits->tokens_max, limits->tokens);
	left->answers = rest(limits->iterations_max, limits->iterations);
	if (limits->money_max > limits->money)
		left->money = limits->money_max - limits->money;
	seconds = limits_left_s(limits, clock_now_ms(), false);
	left->seconds = isinf(seconds) ? 0 : seconds;
	left->used_up =
		(limits->tokens_max > 0 && left->tokens == 0) ||
		(limits->money_max > 0 && (left->money <= 0 || limits->money_is_lost)) ||
		(limits->wall_s > 0 && seconds <= 0);
}

void agent_spent(struct agent *agent, const struct model_usage *usage, uint64_t answers)
{
	if (!agent->turn)
		return;
	turn_add_usage(agent->turn, usage);
	agent->turn->limits.iterations += answers;
}
