/*
 * schedules: which agent does which task, where and when, without a person there. They
 * are in one SQLite file of their own in the user's state folder. A schedule that an
 * agent asks for is `pending` until a person approves it. The approval holds for the hash
 * of its exact content, which cannot be changed afterwards. The caller computes times
 * (agent/when.h): here they are seconds since 1970.
 */
#pragma once
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct schedules;

enum {
	SCHEDULES_TASK_MAX = 16 << 10,
	SCHEDULES_NAME_MAX = 64, /* bytes of an agent's or a zone's name */
	SCHEDULES_MAX = 200,     /* of one user; a person can still read such a list */
	/* Schedules of agents that may wait for approval in one workspace. */
	SCHEDULES_PENDING_MAX = 10,
};

enum schedule_state { SCHEDULE_PENDING, SCHEDULE_ACTIVE, SCHEDULE_DISABLED };
const char *schedule_state_name(enum schedule_state state); /* "pending" */

struct schedule {
	int64_t id; /* never used again */
	/* the content; valid until the callback returns */
	struct str workspace, agent, task, times, zone; /* zone "": the machine's */
	struct str by;      /* the agent that asked for it; "": a person */
	struct str session; /* of that agent */
	enum schedule_state state;
	int64_t made_s, next_s; /* next_s 0: never */
	int64_t last_s;         /* its last run began; 0: it had none */
	/* when the run under way is over at the latest; 0: no run is under way */
	int64_t busy_until_s;
	struct str last_session, last_outcome;
	char hash[HASH_HEX + 1]; /* of the content */
	bool approved;           /* exactly this content was approved */
};

/* The file beside the journal (store/database.h). */
bool schedules_open(const char *path, struct schedules **schedules, struct err *err);
void schedules_close(struct schedules *schedules); /* NULL is fine */

/*
 * Could the content of SCHEDULE be kept now? ERR: E2BIG, EINVAL (a NUL byte, an empty text),
 * ENOSPC, EEXIST (the same content is there already). Otherwise HASH receives its hash.
 */
bool schedules_may_add(struct schedules *schedules, const struct schedule *schedule,
		       char hash[HASH_HEX + 1], struct err *err);

/*
 * Keep the content of SCHEDULE and its `by`, `session` and `next_s`. The schedule of a
 * person (`by` is empty) is approved and active immediately; the schedule of an agent is
 * pending. *ID and HASH receive the new number and the hash. ERR: as schedules_may_add.
 */
bool schedules_add(struct schedules *schedules, const struct schedule *schedule,
		   int64_t *id, char hash[HASH_HEX + 1], struct err *err);

/*
 * All schedules of WORKSPACE (NULL: of every workspace), or with ID > 0 only that one,
 * ordered by id; the callback returns false to stop.
 */
bool schedules_find(struct schedules *schedules, const char *workspace, int64_t id,
		    bool (*schedule)(void *context, const struct schedule *schedule),
		    void *context, struct err *err);

/*
 * The person approves the content HASH of the schedule ID. ERR: ENOENT, ESTALE (its
 * content is another).
 */
bool schedules_approve(struct schedules *schedules, int64_t id,
		       const char hash[HASH_HEX + 1], int64_t next_s, struct err *err);

/* ERR: ENOENT; EPERM for SCHEDULE_ACTIVE while it is not approved. */
bool schedules_set_state(struct schedules *schedules, int64_t id,
			 enum schedule_state state, int64_t next_s, struct err *err);
bool schedules_remove(struct schedules *schedules, int64_t id, struct err *err);

/*
 * Replace the times and the zone of SCHEDULE, as it was found, by those of RENEWED, which
 * mean the same: it keeps everything else, its approval included, and gets the hash of the
 * new content. Nothing changes when the schedule is another by now, or when another one
 * has that content already.
 */
bool schedules_renew(struct schedules *schedules, const struct schedule *schedule,
		     const struct schedule *renewed, struct err *err);

/*
 * Reserve a run of SCHEDULE for the caller. *CLAIMED becomes true when SCHEDULE, as it
 * was found, is active, approved, still due at its next_s, and not running; the caller
 * then runs it. From then on SCHEDULE is busy until UNTIL_S and due next at NEXT_S (0:
 * never).
 */
bool schedules_claim(struct schedules *schedules, const struct schedule *schedule,
		     int64_t now_s, int64_t until_s, int64_t next_s, bool *claimed,
		     struct err *err);
/* The run that was claimed until UNTIL_S has ended. */
bool schedules_end(struct schedules *schedules, int64_t id, int64_t until_s,
		   const char *outcome, const char *session, struct err *err);
