/*
 * groups: a control group for each worker (sandbox/cgroup.h), where this machine has any to
 * give. Moving a process into one can take the kernel 15 ms, so a process of its own does
 * it while the worker is idle; a call that comes sooner is watched by its worker
 * (limit_watch.h), and so are the calls of one-shot verbs, which are faster than a move. That
 * process also removes the groups, at the latest when it sees that the front is gone.
 */
#pragma once
#include "policy/policy.h"
#include "process/loop.h"
#include "sandbox/cgroup.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stdint.h>

struct groups;

/* The group of one worker, part of its struct; zero it. */
struct group_end {
	unsigned id;                /* 0: none was asked for */
	bool held[CGROUP_COUNTERS]; /* the kernel counts for it */
	int counts[CGROUP_COUNTERS];
	uint64_t before[CGROUP_COUNTERS]; /* counted for earlier workers */
	struct group_end *next;
};

/*
 * Start that process. NULL where no groups can be made. PROGRAM as in session.h. LIMITS hold
 * for each worker with all that it starts.
 */
struct groups *groups_start(struct loop *loop, const char *program,
			    const struct policy_limits *limits);
/* End it; waits until the groups are gone. NULL is fine. */
void groups_stop(struct groups *groups);

/* Ask for a group for the worker behind PIDFD, whose END stays where it is. */
void groups_add(struct groups *groups, struct group_end *end, int pidfd);
/* The worker is gone, or going. */
void groups_drop(struct groups *groups, struct group_end *end);
/* Hear, without waiting, which groups are ready. Also called by the loop. */
void groups_listen(struct groups *groups);

/* A call is sent to that worker: need nobody else look after CONTROLLER's limit? */
bool groups_rely(const struct group_end *end, enum cgroup_controller controller);

/*
 * A call of that worker has ended: the limits its group has held it to, as denials. Nothing is
 * asked when it succeeded.
 */
void groups_tell(const struct group_end *end, const struct policy *policy,
		 struct tool_result *result);

/*
 * The process itself; never returns. Arguments: the numbers of its socket and of a pidfd of
 * the front, and the limits.
 */
#define GROUPS_ROLE "glovebox-groups"
enum { GROUPS_ARGUMENTS = 5 };
_Noreturn void groups_role(char **argv);

/* What they say to each other; descriptors travel beside. */
struct groups_request {
	uint32_t gone; /* the group of a worker that is; 0: none */
	uint32_t id;   /* for a new one, whose pidfd comes beside; 0: none */
};
struct groups_reply {
	uint32_t id;
	uint32_t held[CGROUP_COUNTERS]; /* each comes with its descriptor, in this order */
	uint64_t before[CGROUP_COUNTERS];
};
