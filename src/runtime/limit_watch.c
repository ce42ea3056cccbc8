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

static struct limit_space space_left(const struct statvfs *fs)
{
	return (struct limit_space){.bytes = (uint64_t)fs->f_bavail * fs->f_frsize,
				    .files = fs->f_files > 0 ? fs->f_favail : UINT64_MAX};
}

struct limit_space limit_watch_free_space(const char *path)
{
	struct statvfs fs;

	if (!path || statvfs(path, &fs) < 0)
		return (struct limit_space){UINT64_MAX, UINT64_MAX};
	return space_left(&fs);
}

bool limit_watch_is_below(const struct limit_space *left, const struct limit_space *floor)
{
	return left->bytes < floor->bytes || left->files < floor->files;
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
	if (watch->floor.bytes || watch->floor.files) {
		watch->left = limit_watch_free_space(watch->call->space);
		if (limit_watch_is_below(&watch->left, &watch->floor)) {
			watch->reached = LIMIT_SPACE;
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
static uint64_t floor_of(uint64_t limit, uint64_t left)
{
	return left < limit ? left / 2 : limit;
}

/* As large a part of the files as of the bytes stays free. */
static void set_floor(struct limit_watch *watch)
{
	const uint64_t limit = watch->call->limits.free_space;
	struct statvfs fs;

	if (!limit || !watch->call->space || statvfs(watch->call->space, &fs) < 0)
		return;
	const struct limit_space left = space_left(&fs);
	const double whole = (double)fs.f_blocks * (double)fs.f_frsize;
	const double part = (double)limit < whole ? (double)limit / whole : 1;
	watch->floor.bytes = floor_of(limit, left.bytes);
	if (fs.f_files > 0)
		watch->floor.files =
			floor_of((uint64_t)((double)fs.f_files * part), left.files);
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
