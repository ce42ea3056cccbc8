/*
 * worker: the cells of one machine of a fleet. It takes as many tasks from the queue as it
 * has free cells (fleet/batch/slots.h), renews their leases, puts their results into the store,
 * and only then takes them out of the queue. Of all workers of a fleet one is the lead, which
 * compares the queue with the store each minute: a task without a result that is not queued
 * is published again, one with a result that is still queued is taken out.
 *
 * A kill at any moment gives the task again, to this or another worker; the second result is
 * refused by the store.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "fleet/batch/job.h"
#include "fleet/queue/queue.h"
#include "fleet/store.h"

#include <stdbool.h>
#include <stddef.h>

struct fleet_worker;

struct fleet_worker_options {
	struct fleet_queue *queue;
	struct fleet_store *store;
	const char *program;      /* our own, for engines */
	const char *config;       /* for engines, or NULL */
	const char *name;         /* of this worker among all: letters, digits, "._-" */
	const char *fleet;        /* the fleet's name */
	size_t cells;             /* 0: processors */
	const char *const *lanes; /* NULL-ended; NULL: all */
	const char *const *labels; /* that this worker has, "NAME=VALUE", NULL-ended; NULL: none */
	/* Sentences for the person who runs it. Called by any thread. */
	void (*say)(void *context, const char *line);
	void *context;
};

bool fleet_worker_start(const struct fleet_worker_options *options,
			struct fleet_worker **worker, struct err *err);
/* Take no more tasks, and give those back that have not begun; what runs goes on. */
void fleet_worker_drain(struct fleet_worker *worker);
/* End what runs, in order; its tasks are given back. */
void fleet_worker_stop(struct fleet_worker *worker);
/* Nothing runs, and nothing will. */
bool fleet_worker_over(const struct fleet_worker *worker);
/* Wait until all is over, then free. */
void fleet_worker_finish(struct fleet_worker *worker);

/* Findings of a comparison of a job's queue and results has found and done. */
struct fleet_reconciled {
	size_t tasks, results, queued, published, removed;
	size_t strays; /* messages that were of none of its tasks */
};
/*
 * Publish the tasks of JOB that have no result and are not queued, unless PAUSED; take those
 * out of the queue that have one, and messages that stand where no task of JOB belongs.
 */
bool fleet_worker_reconcile(struct fleet_queue *queue, const struct fleet_job *job,
			    bool paused, struct fleet_reconciled *found, struct err *err);

/*
 * The fleet's part of a job besides batch/job.h: jobs/J/fleet.json, which makes it one of
 * the FLEET's.
 */
bool fleet_worker_enlist(struct fleet_store *store, const char *fleet, const char *job,
			 bool paused, struct err *err);
/* *MINE: JOB is one of FLEET's. */
bool fleet_worker_enlisted(struct fleet_store *store, const char *fleet, const char *job,
			   bool *mine, bool *paused, struct err *err);
/* Limits of lanes are kept in the store as well: {LANE: {permits, per_minute}}. */
bool fleet_worker_keep_limit(struct fleet_store *store, const char *fleet, const char *lane,
			     int permits, int per_minute, struct err *err);

/* No number of a heartbeat is believed beyond this: it may be anybody's who may publish. */
enum { FLEET_BEAT_MOST = 4096 };
/* The number KEY of the heartbeat BEAT, or of a part of it: 0 to FLEET_BEAT_MOST. */
int fleet_worker_number(const struct value *beat, const char *key);

/* All that runs, by the heartbeats of the workers. */
struct fleet_running {
	struct value *jobs; /* job -> {id: worker}; owned by the caller, also after a failure */
	size_t workers, cells, busy;
};
bool fleet_worker_running(struct fleet_queue *queue, struct fleet_running *running,
			  struct err *err);
/*
 * Write the result "cancelled" for the tasks of JOB that have none: those that IDS name
 * (NULL-ended; empty: each), and that do not run, or ALL of these. *WRITTEN grows by those that
 * were written; *LEFT: those that run, whose workers end them.
 */
bool fleet_worker_cancel(struct fleet_queue *queue, struct fleet_store *store,
			 const struct fleet_job *job, const char *const *ids, bool all,
			 size_t *written, size_t *left, struct err *err);
