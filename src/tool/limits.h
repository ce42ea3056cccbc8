/*
 * limits: the limits of a command that no call of the kernel holds it to, kept by
 * looking on about every 100 ms while it runs; and all limits, told by name when they were
 * reached. A command that ends before the first look costs two questions for free space.
 * System calls of the command that were refused are taken and told beside.
 *
 * The kernel keeps the limits that it can (sandbox_limits, the sizes of mounts).
 * Memory and processes are counted by a control group (cell/groups.h) where one can be
 * had, else by the worker, which looks on (process/usage.h).
 */
#pragma once

#include "process/program.h"
#include "process/usage.h"
#include "sandbox/sandbox.h"
#include "tool/call.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The floor of free space below which a command may not bring the file system of its
 * workspace. While much is free, looking is enough: the looks come the sooner, the
 * nearer the floor is. Near the floor the space itself is reserved by a file without a
 * name, so that the kernel refuses the command's writes at the floor, however many
 * processes write and however late a look comes. The reserve is given back when nothing
 * of the command runs any more.
 */

/* Of a file system. UINT64_MAX: nobody knows, or it has no number of files. */
struct free_room {
	uint64_t bytes, files;
};

struct free_space {
	const char *path;       /* a folder of the file system; NULL: there is no floor */
	struct free_room floor; /* below the policy's when the command began below that */
	struct free_room left;  /* at the last look, with the reserve */
	uint64_t near;         /* the reserve is made when less is left above the floor */
	uint64_t piece;        /* of the reserve, between two looks */
	uint64_t reserve_most; /* 0: this file system reserves nothing */
	uint64_t reserved;
	int fd;       /* of the reserve; -1: none */
	bool reached; /* the command took all it may have, or more */
	bool refuses; /* from here on the kernel refused writes that did not fit above the floor */
};

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
