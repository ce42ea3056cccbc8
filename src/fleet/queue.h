/*
 * queue: what may be begun next, over many machines: publish, take, renew, done, watch. The
 * queue may be lost, the store may not: everything here can be built again from the store
 * (fleet/worker.h, reconcile). The one engine today is NATS JetStream (queue_nats.c, by
 * libnats >= 3.4, loaded at first use); nothing of it is seen through this header.
 *
 * Delivery is at least once. A task that was taken and neither renewed nor answered within
 * FLEET_LEASE_S comes again to somebody else. All functions may be called by several threads.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "fleet/task.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FLEET_LEASE_S = 120, FLEET_RENEW_S = 40, FLEET_WORKER_S = 45 };

struct fleet_queue;
struct fleet_lease;

struct fleet_queue_options {
	const char *url;         /* nats://HOST:PORT[,…] or tls://… */
	const char *name;        /* the fleet's: part of every subject */
	const char *credentials; /* an nkey seed or credentials file, or NULL */
	const char *ca_file, *certificate, *key; /* or NULL */
	int replicas;                            /* 1 or 3, of streams that are made */
};

/* Connect and make what is missing. ERR says what the server lacks, and the remedy. */
bool fleet_queue_open(const struct fleet_queue_options *options,
		      struct fleet_queue **queue, struct err *err);
void fleet_queue_close(struct fleet_queue *queue);

/* TASK's line under JOB; one that waits already is no error (*THERE). */
bool fleet_queue_publish(struct fleet_queue *queue, const char *job,
			 const struct fleet_task *task, bool *there, struct err *err);

/*
 * Take at most COUNT tasks of LANES (NULL: all), highest priority first, each with a permit of
 * its lane; wait at most SECONDS. *TAKEN may be 0.
 */
bool fleet_queue_take(struct fleet_queue *queue, const char *const *lanes, size_t count,
		      double seconds, struct fleet_lease **leases, size_t *taken,
		      struct err *err);
const char *fleet_lease_job(const struct fleet_lease *lease);
struct str fleet_lease_line(const struct fleet_lease *lease);
/* From 1; more than the task's attempts: who has it writes "gave_up". */
int fleet_lease_deliveries(const struct fleet_lease *lease);
/* "In progress". False: the lease is lost, and the run must end. */
bool fleet_lease_renew(struct fleet_lease *lease, struct err *err);
/* The result is in the store: tell RESULTS, take the task from the queue, confirmed; give the permit back. */
bool fleet_lease_done(struct fleet_lease *lease, const struct value *result,
		      struct err *err);
/* Give it back, to come again after SECONDS. */
void fleet_lease_return(struct fleet_lease *lease, double seconds);

/* Permits of LANE over the whole fleet; 0: as many as there are slots. */
bool fleet_queue_limit(struct fleet_queue *queue, const char *lane, int permits,
		       int per_minute, struct err *err);

/* Key and value, kept by the queue: cancels, pauses, heartbeats. SECONDS 0: for ever. */
bool fleet_queue_set(struct fleet_queue *queue, const char *key, struct str value,
		     double seconds, struct err *err);
bool fleet_queue_get(struct fleet_queue *queue, const char *key, struct value **value,
		     struct err *err);
/* Set KEY only when it is free: the lead of what one worker alone does. */
bool fleet_queue_claim(struct fleet_queue *queue, const char *key, struct str value,
		       double seconds, bool *mine, struct err *err);
bool fleet_queue_keys(struct fleet_queue *queue, const char *prefix,
		      bool (*take)(void *context, const char *key, struct str value),
		      void *context, struct err *err);

/* An event of a task, for those who look on; at most 4 a second a task, else dropped. */
void fleet_queue_tell(struct fleet_queue *queue, const char *job, const char *id,
		      struct str event);
/* Events or results of JOB (and ID, or NULL) as they come, until TAKE says false. */
enum fleet_watch { FLEET_WATCH_EVENTS, FLEET_WATCH_RESULTS };
bool fleet_queue_watch(struct fleet_queue *queue, enum fleet_watch what, const char *job,
		       const char *id,
		       bool (*take)(void *context, const char *id, struct str text),
		       void *context, struct err *err);

/* Tasks of JOB that wait or are worked on; their ids to TAKE. */
bool fleet_queue_waiting(struct fleet_queue *queue, const char *job,
			 bool (*take)(void *context, const char *id), void *context,
			 struct err *err);
/* Take ID of JOB (NULL: all of it) out of the queue. */
bool fleet_queue_purge(struct fleet_queue *queue, const char *job, const char *id,
		       uint64_t *removed, struct err *err);

/* What `fleet doctor` says: version, replicas, sync_interval, streams; each with a sentence. */
bool fleet_queue_examine(struct fleet_queue *queue, struct value **report, struct err *err);
