/*
 * groups: a control group for each worker (sandbox/cgroup.h), where this machine allows
 * groups. Moving a process into a group can take the kernel 15 ms, so a separate process
 * does this while the worker is idle. A call that begins before the move is watched by
 * its worker (limits.h). So are the calls of one-shot verbs, which are faster than a
 * move. The separate process also removes the groups, at the latest when it sees that the
 * front is gone.
 *
 * The process has nothing of the front's memory. A worker without a group, or without
 * one yet, adds up its own namespace. The group ends the largest process of a command,
 * the worker ends the whole command.
 */
#pragma once

#include "base/err.h"
#include "policy/policy.h"
#include "process/loop.h"
#include "process/usage.h"
#include "sandbox/cgroup.h"
#include "tool/tool.h"
#include "view/spec.h"

#include <stdbool.h>
#include <stdint.h>

struct groups;
struct starter;

/* The group of one worker, a member of the struct of the worker. Zero it first. */
struct group_end {
	unsigned id;                /* 0: none was asked for */
	bool held[CGROUP_COUNTERS]; /* the kernel counts for it */
	int counts[CGROUP_COUNTERS];
	uint64_t before[CGROUP_COUNTERS]; /* counted for earlier workers */
	struct group_end *next;
};

/*
 * The group of this front, below which its cells have theirs: of many cells, or of one. Zero
 * it first: it is found when the first cell needs it.
 */
struct groups_front {
	struct cgroup_place place;
	unsigned cells; /* that were made below it */
};
/* Leave the group, which is removed when nothing is left below it. */
void groups_front_close(struct groups_front *front);

/*
 * The control group of a whole cell (cgroup.h). The front makes it before the anchor, which
 * is born in it. Zero it first: there is none.
 */
struct groups_cell {
	const struct groups_front *front;
	struct groups_front own; /* where the cell shares none */
	struct cgroup_cell group;
};

/*
 * Can this machine keep those of LIMITS that need a control group, for this user? ENOTSUP in
 * ERR when not, and the text says which, and how to get one. A limit is never pretended.
 */
bool groups_cell_check(const struct policy_limits *limits, struct err *err);
/*
 * Make the group of a cell of SPEC, with LIMITS, and put its doors into SPEC. The cell of ONE command
 * has no more processes than that command may have (limits.pids). SHARED outlives
 * the cell; NULL: none. As groups_cell_check, or another error. A cell whose LIMITS need none
 * can do without.
 */
bool groups_cell_open(const struct policy_limits *limits, bool one,
		      struct cell_spec *spec, struct groups_front *shared,
		      struct groups_cell *cell, struct err *err);
/* Replace the estimates in ACCOUNTS by what the kernel has counted for CELL. */
void groups_cell_read(const struct groups_cell *cell, struct accounts *accounts);
/* The processes of the cell have been killed. */
void groups_cell_close(struct groups_cell *cell);

/* The orders for a groups process. */
struct groups_order {
	uint64_t memory, pids;      /* of each worker with all that it starts */
	char cell[CGROUP_NAME_MAX]; /* the group in which theirs are made; "": none */
};

/*
 * Start the groups process: STARTER (starter.h) clones it, or with NULL PROGRAM, as in
 * session.h, is executed. NULL where no groups can be made. LIMITS hold for each worker
 * together with all that it starts. CELL: their groups are made in the group of this cell,
 * where it has one.
 */
struct groups *groups_start(struct loop *loop, const char *program,
			    struct starter *starter, const struct policy_limits *limits,
			    const struct groups_cell *cell);
/* The groups process begins to end. groups_stop waits for it. NULL is fine. */
void groups_leave(struct groups *groups);
/* End the groups process and wait until the groups are gone. NULL is fine. */
void groups_stop(struct groups *groups);

/* Request a group for the worker behind PIDFD. END must not move until groups_drop. */
void groups_add(struct groups *groups, struct group_end *end, int pidfd);
/* The worker is gone, or going. */
void groups_drop(struct groups *groups, struct group_end *end);
/* Read without waiting which groups are ready. The loop also calls this. */
void groups_listen(struct groups *groups);

/*
 * Does the kernel enforce the limit of CONTROLLER for this worker, so that the worker
 * need not watch it?
 */
bool groups_rely(const struct group_end *end, enum cgroup_controller controller);

/*
 * A call of this worker has ended: add a denial to RESULT for each limit at which its
 * group refused something. Does nothing when the call succeeded.
 */
void groups_tell(const struct group_end *end, const struct policy *policy,
		 struct tool_result *result);

/*
 * Run the groups process; never returns. Arguments: the numbers of its socket and of a
 * pidfd of the front, the limits, and the name of the cell's group or "".
 */
#define GROUPS_ROLE "glovebox-groups"
enum { GROUPS_ARGUMENTS = 6 };
_Noreturn void groups_role(char **argv);
/* Be the groups process of ORDER, at SOCKET, of the front behind the pidfd FRONT. */
_Noreturn void groups_run(int socket, int front, const struct groups_order *order);
