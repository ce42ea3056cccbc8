/*
 * jobs: the jobs of a fleet as its queue and its store have them together: which are the fleet's,
 * the limits of its lanes, the tasks that run, the cancelling of tasks, and the comparison that
 * makes the queue again from the store. No worker is needed for any of it: a worker and the
 * command line (`glovebox fleet`) call the same functions.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "fleet/batch/job.h"
#include "fleet/queue/queue.h"
#include "fleet/store.h"

#include <stdbool.h>
#include <stddef.h>

/* Findings of a comparison of a job's queue with its results, and what it has done. */
struct fleet_reconciled {
	size_t tasks, results, queued, published, removed;
	size_t strays; /* messages that were of none of its tasks */
};
/*
 * Publish the tasks of JOB that have no result and are not queued, unless PAUSED; take those
 * out of the queue that have one, and messages that stand where no task of JOB belongs.
 */
bool fleet_jobs_reconcile(struct fleet_queue *queue, const struct fleet_job *job,
			  bool paused, struct fleet_reconciled *found, struct err *err);

/*
 * The fleet's part of a job besides batch/job.h: jobs/J/fleet.json, which makes it one of
 * the FLEET's.
 */
bool fleet_jobs_enlist(struct fleet_store *store, const char *fleet, const char *job,
		       bool paused, struct err *err);
/* *MINE: JOB is one of FLEET's. */
bool fleet_jobs_enlisted(struct fleet_store *store, const char *fleet, const char *job,
			 bool *mine, bool *paused, struct err *err);
/*
 * The limits of lanes, which the store keeps as well: {LANE: {permits, per_minute}}. The
 * caller owns *LIMITS.
 */
bool fleet_jobs_limits(struct fleet_store *store, const char *fleet,
		       struct value **limits, struct err *err);
bool fleet_jobs_keep_limit(struct fleet_store *store, const char *fleet, const char *lane,
			   int permits, int per_minute, struct err *err);

/* No number of a heartbeat is believed beyond this: it may be anybody's who may publish. */
enum { FLEET_BEAT_MOST = 4096 };
/* The number KEY of the heartbeat BEAT, or of a part of it: 0 to FLEET_BEAT_MOST. */
int fleet_running_number(const struct value *beat, const char *key);

/* All that runs, by the heartbeats of the workers. */
struct fleet_running {
	struct value *jobs; /* job -> {id: worker}; owned by the caller, also after a failure */
	size_t workers, cells, busy;
};
bool fleet_running_read(struct fleet_queue *queue, struct fleet_running *running,
			struct err *err);
/*
 * Write the result "cancelled" for the tasks of JOB that have none: those that IDS name
 * (NULL-ended; empty: each), and that do not run, or ALL of these. *WRITTEN grows by those that
 * were written; *LEFT: those that run, whose workers end them.
 */
bool fleet_jobs_cancel(struct fleet_queue *queue, struct fleet_store *store,
		       const struct fleet_job *job, const char *const *ids, bool all,
		       size_t *written, size_t *left, struct err *err);
/* The same for the task ID of JOB only. WORKER, or NULL, is named in the result. */
bool fleet_jobs_cancel_one(struct fleet_store *store, const char *job, const char *id,
			   const char *worker, struct err *err);
/* The result of the task ID of JOB, owned by the caller; NULL: there is none. */
bool fleet_jobs_result(struct fleet_store *store, const char *job, const char *id,
		       struct value **result, struct err *err);
