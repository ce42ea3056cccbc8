/* limit_watch: what is looked at; see limit_watch.h. */
#include "runtime/limit_watch.h"

#include "base/clock.h"

#include <string.h>
#include <sys/statvfs.h>

enum {
	EVERY_MS = 100,
	/* A look that takes long comes less often: at most a tenth of one processor. */
	REST_FACTOR = 10,
	REFUSALS_AT_ONCE = 64, /* each takes some microseconds */
};

uint64_t limit_watch_free_space(const char *path)
{
	struct statvfs fs;

	if (!path || statvfs(path, &fs) < 0)
		return UINT64_MAX;
	return (uint64_t)fs.f_bavail * fs.f_frsize;
}

static bool limit_reached(void *context, int64_t *again_ms)
{
	struct limit_watch *watch = context;
	const struct call_limits *limits = &watch->call->limits;
	int64_t began = clock_now_us();
	struct usage usage;

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
	if (watch->floor) {
		uint64_t left = limit_watch_free_space(watch->call->space);

		if (left < watch->floor) {
			watch->reached = LIMIT_SPACE;
			watch->held = left;
			return true;
		}
	}
	*again_ms = EVERY_MS + REST_FACTOR * (clock_now_us() - began) / 1000;
	return false;
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

/* Who begins below the limit may run, to make room say, but not use up the rest. */
static void set_floor(struct limit_watch *watch)
{
	uint64_t limit = watch->call->limits.free_space;

	if (limit && watch->call->space) {
		uint64_t left = limit_watch_free_space(watch->call->space);

		watch->floor = left < limit ? left / 2 : limit;
	}
}

void limit_watch_start(struct limit_watch *watch, struct call *call, struct program_run *run)
{
	const struct call_limits *limits = &call->limits;

	*watch = (struct limit_watch){.call = call};
	/* Before it runs: on a busy machine it may be done before anybody looks. */
	set_floor(watch);
	if (limits->memory)
		usage_begin(&watch->memory);
	watch->watch = (struct program_watch){
		.after_ms = EVERY_MS,
		.reached = limit_reached,
		.fd = call->listener > 0 ? call->listener : -1,
		.ready = calls_refused,
		.context = watch,
	};
	run->quiet_s = limits->quiet_s;
	run->watch = &watch->watch;
}
