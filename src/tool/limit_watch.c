/* limit_watch: what is looked at; see limit_watch.h. */
#include "tool/limit_watch.h"

#include "base/clock.h"

#include <string.h>

enum {
	EVERY_MS = 100,
	/* A look that takes long comes less often: at most a tenth of one processor. */
	REST_FACTOR = 10,
	REFUSALS_AT_ONCE = 64, /* each takes some microseconds */
};

static bool limit_reached(void *context, int64_t *again_ms)
{
	struct limit_watch *watch = context;
	const struct call_limits *limits = &watch->call->limits;
	int64_t began = clock_now_us(), usage_ms;
	struct usage usage;

	if (free_space_look(&watch->space)) {
		watch->reached = LIMIT_SPACE;
		return true;
	}
	*again_ms = free_space_next_ms(&watch->space);
	if (began < watch->usage_at_us)
		return false;
	began = clock_now_us();
	if ((limits->memory || limits->pids) &&
	    usage_measure(&watch->memory, limits->memory, &usage)) {
		if (usage.tasks > watch->most_tasks)
			watch->most_tasks = usage.tasks;
		if (limits->memory && usage.memory > limits->memory) {
			watch->reached = LIMIT_MEMORY;
			watch->held = usage.memory;
			return true;
		}
	}
	usage_ms = EVERY_MS + REST_FACTOR * (clock_now_us() - began) / 1000;
	watch->usage_at_us = began + usage_ms * 1000;
	return false;
}

/* Nothing of the command runs any more. */
static void command_over(void *context)
{
	struct limit_watch *watch = context;

	free_space_end(&watch->space);
}

/* All that wait, but no endless stream of them: the deadline must be looked at between. */
static void calls_refused(void *context)
{
	struct limit_watch *watch = context;
	struct sandbox_refusal refusal;

	for (int i = 0; i < REFUSALS_AT_ONCE; i++) {
		bool told = false;

		if (!sandbox_refuse_next(watch->call->listener, &refusal))
			return;
		for (size_t j = 0; j < watch->refusal_count && !told; j++)
			told = strcmp(watch->refusals[j].call, refusal.call) == 0;
		if (!told && watch->refusal_count < LIMIT_REFUSALS_MAX)
			watch->refusals[watch->refusal_count++] = refusal;
	}
}

void limit_watch_start(struct limit_watch *watch, struct call *call, struct program_run *run)
{
	const struct call_limits *limits = &call->limits;

	*watch = (struct limit_watch){.call = call};
	free_space_begin(&watch->space, call->space, limits->free_space);
	if (limits->memory)
		usage_begin(&watch->memory);
	watch->watch = (struct program_watch){
		.after_ms = free_space_next_ms(&watch->space),
		.reached = limit_reached,
		.fd = call->listener > 0 ? call->listener : -1,
		.ready = calls_refused,
		.over = command_over,
		.context = watch,
	};
	run->quiet_s = limits->quiet_s;
	run->watch = &watch->watch;
}
