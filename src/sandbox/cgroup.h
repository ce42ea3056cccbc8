/*
 * cgroup: control groups of the kernel, which count exactly the memory and processes of
 * a command. The controllers are `memory` and `pids`: of version 2 where a part of the
 * tree was delegated to this user, of version 1 where the user may write it. A group
 * holds one worker and the processes it starts. A second group below limits the memory
 * of the programs only: when it is full, the kernel kills one of them, and the worker
 * survives to report it. Each controller can be missing; then the worker counts by
 * itself.
 *
 * All groups of one front lie below one group of its own, `glovebox-PID-START`. Every process
 * that uses it holds a lock (flock) on its folders. A folder that nobody locks is one of a
 * front that has ended, and the next front that makes such a group removes it with all that
 * lies in it. So a front looks at each other front once, however many cells it opens.
 *
 * A whole cell may have a group as well (struct cgroup_cell), for exact accounts and for what
 * holds for all of its processes together. The anchor is born in it, so everything in the
 * cell is counted from its first moment on.
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

/* More controllers, which only the group of a whole cell uses. */
enum {
	CGROUP_TIME = CGROUP_CONTROLLERS, /* counts processor time: cpuacct; all of version 2 */
	CGROUP_CPU,                       /* limits it */
	CGROUP_IO, /* of version 2: version 1 does not know whose the cached writes are */
	CGROUP_FOLDERS
};

enum { CGROUP_NAME_MAX = 80 };

/* The place where we can make groups. */
struct cgroup_place {
	int version; /* 2 or 1; 0: nowhere */
	/* held; -1: the controller is missing; in version 2 all are the same folder */
	int folders[CGROUP_FOLDERS];
	char front[CGROUP_NAME_MAX]; /* the group of cgroup_front; "": none */
};

/*
 * Find the place from where this process is. ROOT is a prefix of /proc and the mounts:
 * "" except in tests. Changes nothing, except that it enables the controllers of a
 * delegated place. Always fills PLACE.
 */
void cgroup_find(const char *root, struct cgroup_place *place);
void cgroup_leave(struct cgroup_place *place);

/*
 * Make PLACE the group of the front with pid FRONT, which is made unless another process has
 * made it. The one that makes it removes the groups of fronts that have ended. False, with
 * PLACE as it was, when no group can be made.
 */
bool cgroup_front(struct cgroup_place *place, pid_t front, struct err *err);
/* cgroup_leave, and remove the group of the front when nothing is left below it. */
void cgroup_front_leave(struct cgroup_place *place);

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
 * Make a new group with LIMITS, as number NUMBER of this process. A group that fails
 * halfway is removed again.
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

/*
 * The file that counts how often CONTROLLER refused something (killed a process for
 * memory, refused one for pids), for cgroup_count; -1 when there is none. GROUP owns
 * the descriptor. CONTROLLER is one of enum cgroup_controller up to CGROUP_COUNTERS.
 */
int cgroup_count_file(struct cgroup *group, enum cgroup_controller controller);
uint64_t cgroup_count(int count_fd, enum cgroup_controller controller);

/* The group of a whole cell. */

/* 0: no limit. */
struct cgroup_cell_limits {
	double cpus;       /* processors that it may use at the same time */
	uint64_t pids;     /* processes and threads, where that controller is there */
	uint64_t io_write; /* bytes a second to each of DISKS */
	const dev_t *disks;
	size_t disk_count;
};

/* A descriptor for each controller; -1: none. */
struct cgroup_cell {
	int version; /* 0: there is no group */
	char name[CGROUP_NAME_MAX];
	int folders[CGROUP_FOLDERS]; /* while the group is being made */
	/*
	 * By these the anchor is born in the group: in version 2 the one folder for
	 * clone3(2), in version 1 files to which it writes itself
	 */
	int doors[CGROUP_FOLDERS];
};

/* Figures that the kernel has counted for a cell; UINT64_MAX: it does not count that here. */
struct cgroup_usage {
	uint64_t cpu_us, user_us;
	uint64_t memory_peak;
	uint64_t written, read; /* bytes; cached writes that are not on the disk yet count */
	uint64_t tasks_peak, tasks_refused; /* … and how many were not started */
};

/* Make a group of a cell, with LIMITS, below PLACE, a front's: NUMBER of those below it. */
bool cgroup_cell_make(const struct cgroup_place *place, unsigned number,
		      const struct cgroup_cell_limits *limits, struct cgroup_cell *cell,
		      struct err *err);
void cgroup_cell_read(const struct cgroup_place *place, const struct cgroup_cell *cell,
		      struct cgroup_usage *usage);
/* Remove CELL, whose processes have been killed, waiting until they are gone, up to WAIT_MS. */
void cgroup_cell_remove(const struct cgroup_place *place, struct cgroup_cell *cell,
			int wait_ms);
/*
 * Move this process into the group of DOORS, of version 1 (cgroup_cell.doors). It must have
 * one thread: then the kernel needs no time for the move.
 */
bool cgroup_cell_enter(const int doors[CGROUP_FOLDERS], struct err *err);
/* Make PLACE, a front's, the group NAME of a cell: worker groups are made below it. */
bool cgroup_cell_open(struct cgroup_place *place, const char *name, struct err *err);
