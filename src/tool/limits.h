/*
 * limits: watches the limits of a command that the kernel does not enforce, by a look
 * about every 100 ms while the command runs, and reports by name every limit that was
 * reached. A command that ends before the first look costs only two measurements of
 * free space. The module also reports the system calls of the command that were
 * refused.
 *
 * The kernel keeps the limits that it can (sandbox_limits, the sizes of mounts). Memory
 * and processes are counted by a control group (cell/groups.h) where one can be made,
 * else by the worker at each look (process/usage.h).
 */
#pragma once

#include "process/follow.h"
#include "process/usage.h"
#include "sandbox/sandbox.h"
#include "tool/call.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The floor of free space: a command may not use the file system of its workspace below
 * it. While much space is free, it is enough to measure it, more often the nearer the
 * floor is. Near the floor, a nameless file reserves as many bytes as must stay free,
 * so that the kernel refuses the command's writes at the floor, however many processes
 * write and however late a look is. The reserve is freed when no process of the command
 * runs any more.
 */

/* Room on a file system. UINT64_MAX: not known, or the number of files is not limited. */
struct free_room {
	uint64_t bytes, files;
};

struct free_space {
	const char *path; /* a folder of the file system; NULL: there is no floor */
	/* lower than the policy's when the command began below that */
	struct free_room floor;
	struct free_room left; /* at the last look, including the reserve */
	uint64_t near;         /* start to reserve when less is left above the floor */
	uint64_t piece;        /* bytes to reserve between two looks */
	uint64_t reserve_most; /* 0: this file system cannot reserve */
	uint64_t reserved;
	int fd;       /* of the reserve file; -1: none */
	bool reached; /* the command used all that it may have, or more */
	/* from now on the kernel may refuse writes that do not fit above the floor */
	bool refuses;
};

enum limit_reached { LIMIT_NONE, LIMIT_MEMORY, LIMIT_SPACE, LIMIT_LAYER };

/* Different refused calls of one command; further ones are not reported. */
enum { LIMIT_REFUSALS_MAX = 8 };

struct limit_watch {
	struct program_watch watch;
	struct call *call;
	struct usage_memory memory;
	enum limit_reached reached; /* the limit for which the program was ended */
	uint64_t held;              /* memory used at that time */
	struct free_space space;
	/* used before the command on the file system of a layer in memory, by anybody */
	uint64_t layer_before;
	int64_t usage_at_us; /* time of the next look at memory and processes */
	/* the highest number of processes and threads that was seen, and the most memory */
	uint64_t most_tasks, most_memory;
	struct sandbox_refusal refusals[LIMIT_REFUSALS_MAX];
	size_t refusal_count;
	/* the output goes to the caller's descriptors, so no messages can be searched */
	bool unseen;
};

/*
 * Call this just before follow_program. RUN gets the limits of CALL, and WATCH checks
 * them.
 */
void limit_watch_start(struct limit_watch *watch, struct call *call,
		       struct program_run *run);

/*
 * Call this after follow_program. Adds a denial for every limit that was reached and
 * every refused system call. A command ended for a limit counts as killed by SIGKILL,
 * even if it used its last moments to exit. When the command succeeded, refused calls
 * are only in the details.
 */
void limit_watch_tell(const struct limit_watch *watch, struct program_run *run,
		      struct tool_result *result);
