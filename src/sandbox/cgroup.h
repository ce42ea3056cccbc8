/*
 * cgroup: control groups of the kernel, which count what a command holds exactly: the
 * controllers `memory` and `pids`, of version 2 where a part of the tree was delegated to
 * this user, of version 1 where it may be written. A group holds one worker and what it
 * starts; the memory of its programs is held a second time, by a group below: where that
 * is full the kernel looks for whom to end among them, and their worker lives to tell.
 * Each controller can be missing: then somebody else must count.
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
	 * A counter only: kills among the programs in version 1; 2 counts them in the
	 * group above
	 */
	CGROUP_PROGRAMS = CGROUP_CONTROLLERS,
	CGROUP_COUNTERS
};

/* Where groups of ours can be made. */
struct cgroup_place {
	int version;                     /* 2 or 1; 0: nowhere */
	int folders[CGROUP_CONTROLLERS]; /* held; -1: not this controller; of 2 both the same */
};

/*
 * Look where this process is. ROOT stands before /proc and the mounts: "" but in tests.
 * Nothing is changed but that a delegated place is asked for its controllers. Always
 * fills PLACE.
 */
void cgroup_find(const char *root, struct cgroup_place *place);
void cgroup_leave(struct cgroup_place *place);

enum { CGROUP_NAME_MAX = 80 };

struct cgroup {
	char name[CGROUP_NAME_MAX];
	int folders[CGROUP_CONTROLLERS]; /* -1: the place has it not */
	/* Below CGROUP_MEMORY, for the memory of the programs, or with version 2 for all of them; -1 */
	int programs;
	int worker; /* its own place, which only version 2 wants; or -1 */
	/*
	 * Files that each use asks again, held once they have been: a group serves many
	 * workers, and to open and close one costs more than to read it.
	 */
	int doors[CGROUP_CONTROLLERS]; /* where workers enter */
	int tasks, usage;
	int counts[CGROUP_COUNTERS];
};

/* One that is not there yet. */
#define CGROUP_BLANK                                                                  \
	{                                                                             \
		.folders = {-1, -1}, .programs = -1, .worker = -1, .doors = {-1, -1}, \
		.tasks = -1, .usage = -1, .counts = {                                 \
			-1,                                                           \
			-1,                                                           \
			-1                                                            \
		}                                                                     \
	}

struct cgroup_limits {
	/* bytes, swap included where the kernel counts it: of all, and of the programs together */
	uint64_t memory, programs;
	uint64_t pids;
};

/*
 * A new group with LIMITS, the NUMBERth of this process; its name says whose it is, so
 * that cgroup_sweep knows when that process is gone. A group that fails halfway is
 * removed again.
 */
bool cgroup_make(const struct cgroup_place *place, unsigned number,
		 const struct cgroup_limits *limits, struct cgroup *group, struct err *err);

/* A worker PID and what it starts from now on. The kernel may take 15 ms for it. */
bool cgroup_enter(struct cgroup *group, pid_t pid, struct err *err);
/* A program of that worker's, and what it starts. */
bool cgroup_enter_program(struct cgroup *group, pid_t pid, struct err *err);

/* Does nobody live in it? */
bool cgroup_is_empty(struct cgroup *group);

/* Bytes that are counted for it, UINT64_MAX when nobody knows: what stays is no more. */
uint64_t cgroup_usage(struct cgroup *group);

/* Bytes that stay although nobody lives in it: in files in memory, of a /tmp that lives on. */
uint64_t cgroup_left_memory(const struct cgroup *group);

/* Remove an empty group. False when it is not empty (yet): try again. */
bool cgroup_remove(const struct cgroup_place *place, struct cgroup *group);

/* Remove what processes that are gone have left. */
void cgroup_sweep(const struct cgroup_place *place);

/*
 * The file that counts how often CONTROLLER refused something (took a process for memory,
 * refused one for pids), for cgroup_count; -1 when there is none. GROUP keeps it. One of
 * enum cgroup_controller up to CGROUP_COUNTERS.
 */
int cgroup_count_file(struct cgroup *group, enum cgroup_controller controller);
uint64_t cgroup_count(int count_fd, enum cgroup_controller controller);
