/*
 * limits: watches the limits of a command while it runs, and reports those that were
 * reached.
 */

#include "tool/limits.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/text/text.h"
#include "process/follow.h"
#include "process/usage.h"
#include "sandbox/sandbox.h"
#include "tool/call.h"
#include "tool/denial.h"
#include "tool/tool.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

/* Keeps the floor of free space. */

#define KIBI 1024ULL
#define MEBI (1024 * KIBI)

enum {
	LOOK_MS = 100, /* far from the floor; a look is one system call for free space */
	/*
	 * With the whole reserve, the kernel keeps the floor. A look only finds out
	 * whether it did.
	 */
	RESERVED_MS = 10,
	/*
	 * A look reserves for at most this long, so that the command's deadline is
	 * checked in between.
	 */
	RESERVING_MS = 20,
	/*
	 * Writers in memory are as fast as the growing reserve, so six of them write
	 * six times as much.
	 */
	MEMORY_NEAR_FLOORS = 8,
};

/*
 * More than processes write to the page cache between two looks, even when a look is
 * late.
 */
static const uint64_t disk_near = 512 * MEBI;
/* A disk reserves space without writing; a memory file system fills it with zeros. */
static const uint64_t disk_piece = 256 * MEBI, memory_piece = 4 * MEBI;
/* No file system accepts bytes faster, so the floor is at least this far away in time. */
static const uint64_t bytes_per_ms = 4 * MEBI;
/*
 * Less than a large write, because a writer that was refused may have freed some space.
 */
static const uint64_t full_bytes = 64 * KIBI;

static struct free_room room_of(const struct statvfs *fs)
{
	return (struct free_room){.bytes = (uint64_t)fs->f_bavail * fs->f_frsize,
				  .files = fs->f_files > 0 ? fs->f_favail : UINT64_MAX};
}

/* The free room on the file system of PATH (or NULL). */
static struct free_room free_space_at(const char *path)
{
	struct statvfs fs;

	if (!path || statvfs(path, &fs) < 0)
		return (struct free_room){UINT64_MAX, UINT64_MAX};
	return room_of(&fs);
}

/* Is less LEFT than the FLOOR? */
static bool free_space_is_below(const struct free_room *left, const struct free_room *floor)
{
	return left->bytes < floor->bytes || left->files < floor->files;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t floor_of(uint64_t limit, uint64_t left)
{
	return left < limit ? left / 2 : limit;
}

/*
 * The maximum of a file of this process. A larger file would end the process by
 * SIGXFSZ.
 */
static uint64_t file_size_most(void)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_FSIZE, &most) < 0 || most.rlim_cur == RLIM_INFINITY)
		return INT64_MAX;
	return smaller(most.rlim_cur, INT64_MAX);
}

/*
 * Begin before a command runs: LIMIT bytes, and an equal part of the files, must stay
 * free on the file system of PATH. A command that begins below the limit may use half
 * of the rest, because it may have been started to make room.
 */
static void free_space_begin(struct free_space *space, const char *path, uint64_t limit)
{
	struct statfs kind;
	struct statvfs fs;

	*space = (struct free_space){.fd = -1};
	/*
	 * Measure now, because on a busy machine the command may end before the first
	 * look.
	 */
	if (!limit || !path || statvfs(path, &fs) < 0 || statfs(path, &kind) < 0)
		return;
	const bool memory = kind.f_type == TMPFS_MAGIC;
	const double whole = (double)fs.f_blocks * (double)fs.f_frsize;
	const double part = (double)limit < whole ? (double)limit / whole : 1;

	space->path = path;
	space->left = room_of(&fs);
	space->floor.bytes = floor_of(limit, space->left.bytes);
	if (fs.f_files > 0)
		space->floor.files =
			floor_of((uint64_t)((double)fs.f_files * part), space->left.files);
	space->near = memory ? MEMORY_NEAR_FLOORS * space->floor.bytes : disk_near;
	space->piece = memory ? memory_piece : disk_piece;
	space->reserve_most = smaller(space->floor.bytes, file_size_most());
}

static uint64_t above_floor(const struct free_space *space)
{
	return space->left.bytes > space->floor.bytes
		       ? space->left.bytes - space->floor.bytes
		       : 0;
}

static bool is_reserved(const struct free_space *space)
{
	return space->reserve_most > 0 && space->reserved == space->reserve_most;
}

/* The milliseconds until the next look. */
static int64_t free_space_next_ms(const struct free_space *space)
{
	/*
	 * Only half of the time to the floor: a look may be late, and reserving takes
	 * time.
	 */
	const uint64_t ms = above_floor(space) / 2 / bytes_per_ms;

	if (!space->path)
		return LOOK_MS;
	if (is_reserved(space))
		return RESERVED_MS;
	if (space->reserved > 0)
		return 0;
	return ms > LOOK_MS ? LOOK_MS : ms > 0 ? (int64_t)ms : 1;
}

/* Measure the free space. Has the command used all that it may have? */
static bool is_reached(struct free_space *space)
{
	const struct free_room room = free_space_at(space->path);

	space->left = room;
	if (room.bytes <= UINT64_MAX - space->reserved)
		space->left.bytes += space->reserved;
	space->reached = free_space_is_below(&space->left, &space->floor) ||
			 (is_reserved(space) && room.bytes < full_bytes);
	return space->reached;
}

/*
 * Reserve one more piece. If the file system cannot reserve, the space is only watched.
 */
static void reserve_piece(struct free_space *space)
{
	const uint64_t rest = space->reserve_most - space->reserved;
	const uint64_t size = smaller(space->piece, rest);

	if (space->fd < 0)
		space->fd = open(space->path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (space->fd < 0 ||
	    fallocate(space->fd, 0, (off_t)space->reserved, (off_t)size) < 0)
		space->reserve_most = space->reserved;
	else
		space->reserved += size;
	space->refuses = space->reserved > 0;
}

/* Measure, and reserve when the floor is near. True when the floor is reached. */
static bool free_space_look(struct free_space *space)
{
	const int64_t began = clock_now_ms();

	if (!space->path)
		return false;
	while (!is_reached(space)) {
		if (above_floor(space) >= space->near ||
		    space->reserved >= space->reserve_most ||
		    clock_now_ms() - began >= RESERVING_MS)
			return false;
		reserve_piece(space);
	}
	return true;
}

/* No process of the command runs any more: measure once more and free the reserve. */
static void free_space_end(struct free_space *space)
{
	if (!space->path)
		return;
	/*
	 * A command that was ended at the floor and then removed its files has reached
	 * it all the same.
	 */
	if (!space->reached)
		(void)is_reached(space);
	fd_close(&space->fd);
	space->reserved = 0;
}

/* The bytes in use on the file system of the layer of a review in memory; 0: there is none. */
static uint64_t layer_used(const struct call *call)
{
	struct statvfs fs;

	return call->review_memory > 0 && fstatvfs(call->review_memory, &fs) == 0
		       ? (uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize
		       : 0;
}

enum {
	EVERY_MS = 100,
	/* Slow looks come less often: they use at most a tenth of one processor. */
	REST_FACTOR = 10,
	REFUSALS_AT_ONCE = 64, /* each takes some microseconds */
};

/*
 * Count the tasks and, where MEMORY_MOST is not 0, the memory. Is there more memory than
 * that?
 */
static bool usage_look(struct limit_watch *watch, uint64_t memory_most)
{
	struct usage usage;

	if (!usage_measure(&watch->memory, memory_most, &usage))
		return false;
	if (usage.tasks > watch->most_tasks)
		watch->most_tasks = usage.tasks;
	watch->held = usage.memory;
	if (usage.memory > watch->most_memory)
		watch->most_memory = usage.memory;
	return memory_most > 0 && usage.memory > memory_most;
}

/*
 * A command that keeps all processors busy slows the looks down, so that none of them
 * may have seen it at its limit when its time is over: count once more.
 */
static void count_before_end(void *context)
{
	struct limit_watch *watch = context;

	if (watch->call->limits.pids)
		(void)usage_look(watch, 0);
}

static bool limit_reached(void *context, int64_t *again_ms)
{
	struct limit_watch *watch = context;
	const struct call_limits *limits = &watch->call->limits;
	int64_t began = clock_now_us(), usage_ms;

	if (free_space_look(&watch->space)) {
		watch->reached = LIMIT_SPACE;
		return true;
	}
	*again_ms = free_space_next_ms(&watch->space);
	if (limits->tmp > 0 && layer_used(watch->call) > watch->layer_before + limits->tmp) {
		watch->reached = LIMIT_LAYER;
		return true;
	}
	if (began < watch->usage_at_us)
		return false;
	began = clock_now_us();
	if ((limits->memory || limits->pids) && usage_look(watch, limits->memory)) {
		watch->reached = LIMIT_MEMORY;
		return true;
	}
	usage_ms = EVERY_MS + REST_FACTOR * (clock_now_us() - began) / 1000;
	watch->usage_at_us = began + usage_ms * 1000;
	return false;
}

/* Called when no process of the command runs any more. */
static void command_over(void *context)
{
	struct limit_watch *watch = context;

	free_space_end(&watch->space);
}

/*
 * Refuse all waiting calls, but at most so many, so that the deadline is checked in
 * between.
 */
static void calls_refused(void *context)
{
	struct limit_watch *watch = context;
	struct sandbox_refusal refusal;

	for (int i = 0; i < REFUSALS_AT_ONCE; i++) {
		bool told = false;

		if (!sandbox_refuse_next(watch->call->listener, watch->call->as_root,
					 &refusal))
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
	watch->layer_before = layer_used(call);
	if (limits->memory)
		usage_begin(&watch->memory);
	watch->watch = (struct program_watch){
		.after_ms = free_space_next_ms(&watch->space),
		.reached = limit_reached,
		.fd = call->listener > 0 ? call->listener : -1,
		.ready = calls_refused,
		.before_end = count_before_end,
		.over = command_over,
		.context = watch,
	};
	run->quiet_s = limits->quiet_s;
	run->watch = &watch->watch;
}

/* Reports each limit that a command has reached. */

enum {
	SHELL_SIGNAL = 128, /* a shell adds this to the number of a signal */
	/* less than a large write, because a failed writer may have cleaned up */
	NEARLY_FULL = 64 << 10,
	NEARLY_NO_FILE = 16,
	/*
	 * With less above the floor (the size of a usual archive), a failed program may
	 * have failed for lack of space.
	 */
	LITTLE_ABOVE_FLOOR = 64 << 20,
};

struct telling {
	const struct call *call;
	const struct program_run *run;
	struct tool_result *result;
};

/* Like denial_add_limit, for the agent of the call. */
static void tell(const struct telling *telling, struct denial_limit limit)
{
	limit.agent = telling->call->agent;
	denial_add_limit(telling->result, &limit);
}

static void tell_memory(const struct limit_watch *watch, const struct telling *telling)
{
	char size[32], now[32], target[64], advice[128];

	(void)text_size(telling->call->limits.memory, now);
	(void)snprintf(target, sizeof(target), "%s of memory", now);
	(void)snprintf(advice, sizeof(advice),
		       "the command had %s when it was ended: let it use less at once",
		       text_size(watch->held, size));
	tell(telling, (struct denial_limit){.key = "memory",
					    .target = target,
					    .advice = advice,
					    .now = now});
}

static void tell_layer(const struct telling *telling)
{
	char now[32];

	tell(telling,
	     (struct denial_limit){.key = "tmp",
				   .target = "the layer, which lies in memory",
				   .advice = "the command was ended: let it write less",
				   .now = text_size(telling->call->limits.tmp, now)});
}

/* ENDED: the command was ended for it; otherwise it ended by itself before a look. */
static void tell_space(const struct limit_watch *watch, bool ended,
		       const struct telling *telling)
{
	const struct free_room *left = &watch->space.left;
	char size[32], now[32], target[128];

	if (left->files >= watch->space.floor.files)
		(void)snprintf(target, sizeof(target),
			       "%s left free on the workspace's file system",
			       text_size(left->bytes, size));
	else
		(void)snprintf(target, sizeof(target),
			       "room for %" PRIu64
			       " more files on the workspace's file system",
			       left->files);
	tell(telling,
	     (struct denial_limit){.key = "free_space",
				   .target = target,
				   .advice = ended ? "the command was ended: make room"
						   : "the command has taken the rest: make room",
				   .now = text_size(telling->call->limits.free_space, now),
				   .is_floor = true});
}

/*
 * Report the floor when the command ended before a look; the kernel may have refused a
 * write.
 */
static void tell_space_at_end(const struct limit_watch *watch, const struct telling *telling)
{
	if (watch->space.reached)
		tell_space(watch, false, telling);
}

static void tell_quiet(const struct telling *telling)
{
	char now[32], target[64];

	(void)snprintf(now, sizeof(now), "%g s", telling->run->quiet_s);
	(void)snprintf(target, sizeof(target), "no output for %s", now);
	tell(telling,
	     (struct denial_limit){.key = "quiet_s",
				   .target = target,
				   .advice = "the command was ended: let it say how far it is",
				   .now = now});
}

static bool ended_by(const struct program_run *run, int number)
{
	return run->signal == number || run->exit_code == SHELL_SIGNAL + number;
}

/* Does the kept error output contain TEXT? */
static bool said(const struct program_run *run, const char *text)
{
	struct buf tail;
	bool found;

	if (str_find(buf_str(&run->error.head), str_of(text), 0) != (size_t)-1)
		return true;
	if (run->error.tail_size == 0)
		return false;
	buf_init(&tail, PROGRAM_TAIL);
	follow_output_tail(&run->error, &tail);
	found = str_find(buf_str(&tail), str_of(text), 0) != (size_t)-1;
	buf_fini(&tail);
	return found;
}

static void tell_file_size(const struct telling *telling)
{
	bool exact = telling->run->signal == SIGXFSZ;
	char now[32];

	if (!exact && !ended_by(telling->run, SIGXFSZ) &&
	    !said(telling->run, "File too large"))
		return;
	tell(telling,
	     (struct denial_limit){.key = "file_size",
				   .target = "a file's size",
				   .advice = "write several smaller files",
				   .now = text_size(telling->call->limits.file_size, now),
				   .guessed = !exact});
}

/*
 * Did the command print that a write was refused? If its output was not seen: was
 * little space left?
 */
static bool may_have_been_refused(const struct limit_watch *watch,
				  const struct program_run *run)
{
	if (watch->unseen)
		return watch->space.left.bytes <
		       watch->space.floor.bytes + LITTLE_ABOVE_FLOOR;
	return said(run, "No space left on device");
}

/* The kernel refused the whole of one large file, and its space is free again. */
static void tell_space_refused(const struct limit_watch *watch, const struct telling *telling)
{
	char now[32];

	if (watch->reached == LIMIT_SPACE || watch->space.reached ||
	    !watch->space.refuses || !may_have_been_refused(watch, telling->run))
		return;
	tell(telling, (struct denial_limit){
			      .key = "free_space",
			      .target = "the free space of the workspace's file system",
			      .advice = "what did not fit above it was refused: make room",
			      .now = text_size(telling->call->limits.free_space, now),
			      .is_floor = true,
			      .guessed = true});
}

static bool is_nearly_full(const char *place)
{
	static const struct free_room little = {NEARLY_FULL, NEARLY_NO_FILE};
	const struct free_room left = free_space_at(place);

	return free_space_is_below(&left, &little);
}

static void tell_tmp(const struct telling *telling)
{
	const char *const places[] = {"/tmp", "/dev/shm", telling->call->layer};
	enum { PLACES = sizeof(places) / sizeof(places[0]) };
	bool said_so = said(telling->run, "No space left on device");
	bool found = false;
	char now[32];

	(void)text_size(telling->call->limits.tmp, now);
	for (size_t i = 0; i < PLACES; i++) {
		if (!is_nearly_full(places[i]))
			continue;
		found = true;
		tell(telling,
		     (struct denial_limit){.key = "tmp",
					   .target = places[i],
					   .advice = "it is full: remove what is not needed there",
					   .now = now});
	}
	/*
	 * A writer that has removed its half-written file leaves room again, so look at
	 * the messages.
	 */
	for (size_t i = 0; i < PLACES && said_so && !found; i++) {
		if (places[i] && said(telling->run, places[i]))
			tell(telling,
			     (struct denial_limit){
				     .key = "tmp",
				     .target = places[i],
				     .advice = "it was full: write large files to the workspace",
				     .now = now,
				     .guessed = true});
	}
}

static void tell_pids(const struct limit_watch *watch, const struct telling *telling)
{
	uint64_t most = telling->call->limits.pids;
	/* the worker counts as one */
	bool seen = most > 0 && watch->most_tasks + 1 >= most;
	char now[32], target[64];

	/* 0: a control group counts in the kernel, and the front asks it. */
	if (most == 0)
		return;
	if (!seen && !said(telling->run, "fork: Resource temporarily unavailable") &&
	    !said(telling->run, "fork: retry: Resource temporarily unavailable") &&
	    !said(telling->run, "BlockingIOError: [Errno 11]") &&
	    !said(telling->run, "can't start new thread"))
		return;
	if (seen)
		(void)snprintf(target, sizeof(target), "%" PRIu64 " processes",
			       watch->most_tasks);
	else
		(void)snprintf(target, sizeof(target), "the number of processes");
	(void)snprintf(now, sizeof(now), "%" PRIu64, most);
	tell(telling, (struct denial_limit){.key = "pids",
					    .target = target,
					    .advice = "start fewer at once",
					    .now = now,
					    .guessed = !seen});
}

static void tell_dropped(const struct telling *telling)
{
	char size[32];

	denial_note(telling->result,
		    &(struct denial){.kind = DENIAL_LIMIT,
				     .target = text_size(telling->run->dropped, size),
				     .rule = "output kept of one command",
				     .remedy = "repeat it with its output in a file of the "
					       "workspace"});
}

static void tell_refusals(const struct limit_watch *watch, struct tool_result *result,
			  bool succeeded)
{
	for (size_t i = 0; i < watch->refusal_count; i++) {
		const struct sandbox_refusal *refusal = &watch->refusals[i];
		const struct denial denial = {.kind = DENIAL_PROC,
					      .target = refusal->call,
					      .rule = "seccomp",
					      .remedy = refusal->remedy};

		if (succeeded)
			denial_note(result, &denial);
		else
			denial_add(result, &denial);
	}
}

void limit_watch_tell(const struct limit_watch *watch, struct program_run *run,
		      struct tool_result *result)
{
	const struct telling telling = {.call = watch->call, .run = run, .result = result};
	bool succeeded = run->ending == PROGRAM_ENDED && run->exit_code == 0;

	/* A call may run several programs, one after the other. */
	if (result->accounts.memory_peak < watch->most_memory)
		result->accounts.memory_peak = watch->most_memory;
	if (result->accounts.processes_peak < watch->most_tasks)
		result->accounts.processes_peak = watch->most_tasks;
	if (run->dropped)
		tell_dropped(&telling);
	if (run->ending == PROGRAM_LIMITED || run->ending == PROGRAM_QUIET) {
		result->exit_code = -1;
		result->signal = SIGKILL;
	}
	if (run->ending == PROGRAM_QUIET)
		tell_quiet(&telling);
	if (watch->reached == LIMIT_MEMORY)
		tell_memory(watch, &telling);
	else if (watch->reached == LIMIT_SPACE)
		tell_space(watch, true, &telling);
	else if (watch->reached == LIMIT_LAYER)
		tell_layer(&telling);
	else
		tell_space_at_end(watch, &telling);
	tell_refusals(watch, result, succeeded);
	if (succeeded)
		return;
	tell_file_size(&telling);
	tell_space_refused(watch, &telling);
	tell_tmp(&telling);
	tell_pids(watch, &telling);
}
