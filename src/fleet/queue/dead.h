/*
 * dead: messages that no worker could read, and that are out of the queue. Each is a note in its
 * keys, which is anybody's who may publish. Workers note at most FLEET_DEAD_MOST of a job of the
 * fleet, and one of another job only while there are fewer than that in all. The lead of the
 * workers forgets the notes of a job that it can read, and queues its tasks again; those of a job
 * that is not the fleet's it forgets after a day.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "fleet/queue/queue.h"

#include <stdbool.h>
#include <stddef.h>

enum { FLEET_DEAD_MOST = 1000 };

enum fleet_dead {
	FLEET_DEAD_AWAY, /* the queue does not answer, and nothing is noted */
	FLEET_DEAD_FULL, /* there are as many notes as there may be, and nothing is noted */
	FLEET_DEAD_NOTED,
};
/*
 * Note that the message ID of JOB is dead, which WORKER found it so, and WHY. OURS: JOB
 * is one of the fleet.
 */
enum fleet_dead fleet_dead_note(struct fleet_queue *queue, const char *job, bool ours,
				const char *id, const char *worker, const char *why);
/*
 * The notes of JOB or of all (NULL), an array of {job, id, why, worker, at_ms} with texts of a few
 * hundred bytes, owned by the caller also after a failure. At most FLEET_DEAD_MOST of a job are in
 * it; *MORE: there may be others.
 */
bool fleet_dead_list(struct fleet_queue *queue, const char *job, struct value **dead,
		     bool *more, struct err *err);
/*
 * Forget the note ID of JOB, or all of JOB (NULL); *FORGOTTEN: how many, also when a later one
 * fails. Its tasks are queued again by fleet_jobs_reconcile only.
 */
bool fleet_dead_forget(struct fleet_queue *queue, const char *job, const char *id,
		       size_t *forgotten, struct err *err);
