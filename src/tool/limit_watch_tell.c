/* limit_watch_tell: the sentence of each limit that a command has reached. */
#include "base/text/text.h"
#include "process/follow.h"
#include "tool/denial.h"
#include "tool/limit_watch.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
	SHELL_SIGNAL = 128,     /* what a shell adds to the number of a signal */
	NEARLY_FULL = 64 << 10, /* less than a large write: a writer that failed cleaned up */
	NEARLY_NO_FILE = 16,
	/* A program that fails with less above the floor may have failed for that: one archive. */
	LITTLE_ABOVE_FLOOR = 64 << 20,
};

struct telling {
	const struct call *call;
	const struct program_run *run;
	struct tool_result *result;
};

/* As denial_add_limit, for the agent whose call it is. */
static void tell(const struct telling *telling, struct denial_limit limit)
{
	limit.agent = telling->call->agent;
	denial_add_limit(telling->result, &limit);
}

static void tell_memory(const struct limit_watch *watch, const struct telling *telling)
{
	char size[32], now[32], target[64];

	(void)snprintf(target, sizeof(target), "%s of memory", text_size(watch->held, size));
	tell(telling,
	     (struct denial_limit){.key = "memory",
				   .target = target,
				   .advice = "the command was ended: let it use less at once",
				   .now = text_size(telling->call->limits.memory, now)});
}

/* ENDED: for it; else it was over before anybody looked. */
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

/* The kernel may have refused a write at the floor, and the command ended before a look. */
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

/* Does the kept end of the error output hold TEXT? */
static bool said(const struct program_run *run, const char *text)
{
	struct buf tail;
	bool found;

	if (str_find(buf_str(&run->error.head), str_of(text), 0) != (size_t)-1)
		return true;
	if (run->error.tail_size == 0)
		return false;
	buf_init(&tail, PROGRAM_TAIL);
	program_output_tail(&run->error, &tail);
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

/* Did the command speak of the kernel's refusal, or was its output not seen and little left? */
static bool may_have_been_refused(const struct limit_watch *watch,
				  const struct program_run *run)
{
	if (watch->unseen)
		return watch->space.left.bytes <
		       watch->space.floor.bytes + LITTLE_ABOVE_FLOOR;
	return said(run, "No space left on device");
}

/* One large file was refused whole, and the room it did not get is free again. */
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
	/* A writer that removed its half-written file leaves room again. */
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
	bool seen = most > 0 && watch->most_tasks + 1 >= most; /* the worker is one itself */
	char now[32], target[64];

	/* 0: the kernel counts for a group, and the front asks it. */
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
