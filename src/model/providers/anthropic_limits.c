/*
 * anthropic_limits: how much a model may write and think, in the words that its
 * generation takes: each refuses what is not its own.
 */
#include "model/providers/anthropic.h"

#include "base/value.h"
#include "model/conversation.h"

enum {
	/* Generations by the numbers in a name: claude-opus-4-7 is 407. */
	GENERATION_OTHER = 0, /* no Claude: a server that imitates the API */
	GENERATION_3_5 = 305,
	GENERATION_3_7 = 307,
	/* Decides by itself how long to think, and refuses budgets and temperatures. */
	GENERATION_ADAPTIVE = 407,
	GENERATION_UNNAMED = 9999, /* names without a number are newer than these */
};

enum {
	/*
	 * Tokens of one answer that every model of a generation takes. Even where a model can
	 * give more it is not asked to: what is asked for is taken off the context.
	 */
	OUTPUT_3 = 4096,
	OUTPUT_3_5 = 8192,
	OUTPUT_CLAUDE = 32000,
	/* The context is small on small machines. */
	OUTPUT_OTHER = 16000,
	/* Added to a budget that is no less than the above. */
	OUTPUT_AFTER_THINKING = 8000,
	/* Less is refused by the API. */
	THINKING_MIN = 1024,
};

/* One or two digits at *AT, or none (a date has eight): their number, *AT behind them. */
static bool take_number(struct str text, size_t *at, unsigned *number)
{
	size_t end = *at;

	*number = 0;
	while (end < text.size && text.data[end] >= '0' && text.data[end] <= '9') {
		if (end == *at + 2)
			return false;
		*number = *number * 10 + (unsigned)(text.data[end] - '0');
		end++;
	}
	if (end == *at)
		return false;
	*at = end;
	return true;
}

static unsigned generation_of(struct str name)
{
	size_t at = str_find(name, STR("claude"), 0);
	unsigned major, minor;

	if (at == (size_t)-1)
		return GENERATION_OTHER;
	while (at < name.size && (name.data[at] < '0' || name.data[at] > '9'))
		at++;
	if (!take_number(name, &at, &major))
		return GENERATION_UNNAMED;
	if (at < name.size && (name.data[at] == '-' || name.data[at] == '.')) {
		at++;
		if (take_number(name, &at, &minor))
			return major * 100 + minor;
	}
	return major * 100;
}

static uint64_t output_of(unsigned generation)
{
	if (generation == GENERATION_OTHER)
		return OUTPUT_OTHER;
	if (generation < GENERATION_3_5)
		return OUTPUT_3;
	return generation < GENERATION_3_7 ? OUTPUT_3_5 : OUTPUT_CLAUDE;
}

static void write_adaptive(uint64_t budget, struct buf *body)
{
	/* Unless asked for it, these models do not show what they thought. */
	(void)buf_addf(body,
		       ",\"thinking\":{\"type\":\"adaptive\",\"display\":\"summarized\"},"
		       "\"output_config\":{\"effort\":\"%s\"}",
		       request_effort(budget));
}

void anthropic_write_limits(const struct provider_settings *settings, struct buf *body)
{
	unsigned generation = generation_of(str_of(settings->model));
	bool adaptive = generation >= GENERATION_ADAPTIVE;
	uint64_t most = settings->max_output;
	uint64_t output = most > 0 ? OUTPUT_CLAUDE : output_of(generation);
	uint64_t budget = settings->thinking_budget;

	/* Older ones refuse to think. */
	if (generation != GENERATION_OTHER && generation < GENERATION_3_7)
		budget = 0;
	/* Thinking and the answer come out of one number. */
	if (budget >= output)
		output = budget + OUTPUT_AFTER_THINKING;
	if (most > 0 && output > most)
		output = most;
	if (adaptive) {
		(void)buf_addf(body, "\"max_tokens\":%llu", (unsigned long long)output);
		if (budget > 0)
			write_adaptive(budget, body);
		return;
	}
	if (budget > 0 && budget < THINKING_MIN)
		budget = THINKING_MIN;
	if (budget >= output)
		budget = output / 2 < THINKING_MIN ? 0 : output / 2;
	(void)buf_addf(body, "\"max_tokens\":%llu", (unsigned long long)output);
	if (budget > 0) {
		(void)buf_addf(body,
			       ",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":%llu}",
			       (unsigned long long)budget);
	} else if (settings->temperature >= 0) {
		auto_value struct value *number = value_new_real(settings->temperature);

		(void)buf_adds(body, ",\"temperature\":");
		(void)value_print(number, 0, body);
	}
}
