/*
 * cgroup: control groups of the kernel, which count exactly the memory and processes of
 * a command. The controllers are `memory` and `pids`: of version 2 where a part of the
 * tree was delegated to this user, of version 1 where the user may write it. A group
 * holds one worker and the processes it starts. A second group below limits the memory
 * of the programs alone: when it is full, the kernel kills one of them, and the worker
 * survives to report it. Each controller can be missing; then the worker counts by
 * itself.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum cgroup_controller {
	CGROUP_MEMORY,
	CGROUP_PIDS,
	CGROUP_CONTROLLERS,
	/*
	 * Only a counter: kills among the programs in version 1. Version 2 counts them
	 * in the group above
	 */
	CGROUP_PROGRAMS = CGROUP_CONTROLLERS,
	CGROUP_COUNTERS
};

/* The place where we can make groups. */
struct cgroup_place {
	int version; /* 2 or 1; 0: nowhere */
	/* held; -1: the controller is missing; in version 2 both are the same */
	int folders[CGROUP_CONTROLLERS];
};

/*
 * Find the place from where this process is. ROOT is a prefix of /proc and the mounts:
 * "" except in tests. Changes nothing, except that it enables the controllers of a
 * delegated place. Always fills PLACE.
 */
void cgroup_find(const char *root, struct cgroup_place *place);
void cgroup_leave(struct cgroup_place *place);

enum { CGROUP_NAME_MAX = 80 };

struct cgroup {
	char name[CGROUP_NAME_MAX];
	int folders[CGROUP_CONTROLLERS]; /* -1: the place does not have the controller */
	/*
	 * Below CGROUP_MEMORY: in version 1 for the memory of the programs, in version
	 * 2 for all their counts; or -1
	 */
	int programs;
	int worker; /* the worker's own group, which only version 2 needs; or -1 */
	/*
	 * Files that are needed at each use. They stay open after the first use,
	 * because a group serves many workers, and opening and closing a file costs
	 * more than reading it.
	 */
	int procs[CGROUP_CONTROLLERS]; /* workers enter through these */
	int tasks, usage;
	int counts[CGROUP_COUNTERS];
};

/* A group that is not made yet. */
#define CGROUP_BLANK                                                                  \
	{                                                                             \
		.folders = {-1, -1}, .programs = -1, .worker = -1, .procs = {-1, -1}, \
		.tasks = -1, .usage = -1, .counts = {                                 \
			-1,                                                           \
			-1,                                                           \
			-1                                                            \
		}                                                                     \
	}

struct cgroup_limits {
	/*
	 * bytes, including swap where the kernel counts it: of the whole group, and of
	 * the programs together
	 */
	uint64_t memory, programs;
	uint64_t pids;
};

/*
 * Make a new group with LIMITS, as number NUMBER of this process. Its name identifies
 * this process, so that cgroup_sweep can tell when the process has ended. A group that
 * fails halfway is removed again.
 */
bool cgroup_make(const struct cgroup_place *place, unsigned number,
		 const struct cgroup_limits *limits, struct cgroup *group, struct err *err);

/*
 * Move the worker PID into GROUP; processes that it starts from now on are in it too.
 * The kernel may need 15 ms for the move.
 */
bool cgroup_enter(struct cgroup *group, pid_t pid, struct err *err);
/*
 * Move a program of that worker into GROUP, with the processes that it starts from now
 * on.
 */
bool cgroup_enter_program(struct cgroup *group, pid_t pid, struct err *err);

/* Is no process in GROUP? */
bool cgroup_is_empty(struct cgroup *group);

/* Bytes that are counted for GROUP; UINT64_MAX when this cannot be read. */
uint64_t cgroup_usage(struct cgroup *group);

/*
 * Bytes that stay although no process is in GROUP: files in memory, of a /tmp that
 * lives on.
 */
uint64_t cgroup_left_memory(const struct cgroup *group);

/* Remove an empty group. False when it is not empty (yet): try again. */
bool cgroup_remove(const struct cgroup_place *place, struct cgroup *group);

/* Remove the groups of processes that have ended. */
void cgroup_sweep(const struct cgroup_place *place);

/*
 * The file that counts how often CONTROLLER refused something (killed a process for
 * memory, refused one for pids), for cgroup_count; -1 when there is none. GROUP owns
 * the descriptor. CONTROLLER is one of enum cgroup_controller up to CGROUP_COUNTERS.
 */
int cgroup_count_file(struct cgroup *group, enum cgroup_controller controller);
uint64_t cgroup_count(int count_fd, enum cgroup_controller controller);
