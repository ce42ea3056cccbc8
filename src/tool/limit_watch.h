/*
 * limit_watch: the limits of a command that no call of the kernel holds it to, kept by
 * looking on about every 100 ms while it runs; and all limits, told by name when they were
 * reached. A command that ends before the first look costs two questions for free space.
 * System calls of the command that were refused are taken and told beside.
 */
#pragma once
#include "process/program.h"
#include "process/usage.h"
#include "sandbox/sandbox.h"
#include "tool/call.h"
#include "tool/free_space.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stdint.h>

enum limit_reached { LIMIT_NONE, LIMIT_MEMORY, LIMIT_SPACE };

/* Different refused calls of one command; what is beyond is not told. */
enum { LIMIT_REFUSALS_MAX = 8 };

struct limit_watch {
	struct program_watch watch;
	struct call *call;
	struct usage_memory memory;
	enum limit_reached reached; /* what the program was ended for */
	uint64_t held;              /* memory then */
	struct free_space space;
	int64_t usage_at_us; /* the next look at memory and processes */
	uint64_t most_tasks; /* processes and threads at once, as far as seen */
	struct sandbox_refusal refusals[LIMIT_REFUSALS_MAX];
	size_t refusal_count;
	bool unseen; /* the output goes to the caller's descriptors: no words can be looked for */
};

/* Just before program_follow: RUN gets its limits from CALL, and WATCH looks on. */
void limit_watch_start(struct limit_watch *watch, struct call *call,
		       struct program_run *run);

/*
 * After it: a denial for every limit that was reached and every call that was refused. A
 * command ended for one died by SIGKILL, also when it used its last moments to exit. When it
 * succeeded, what was refused on the way stands in the details alone.
 */
void limit_watch_tell(const struct limit_watch *watch, struct program_run *run,
		      struct tool_result *result);
