/*
 * queue: the tasks that may be begun next, over many machines. The queue may be lost, the
 * store may not: everything here can be built again from the store (fleet/queue/worker.h). The one
 * engine today is NATS JetStream (queue_nats.c, by libnats >= 3.4, which is loaded at first
 * use); nothing of it is seen through this header.
 *
 * Delivery is at least once. A task that was taken and is neither renewed nor answered within
 * the lease comes again to somebody else. All functions may be called by several threads; of
 * fleet_queue_take one thread waits at a time. No function waits longer than it is told, or
 * QUEUE_WAIT_S for an answer of the server.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "fleet/task.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	QUEUE_LEASE_S = 120,     /* unless the fleet was made with another one */
	QUEUE_LEASE_LEAST_S = 2, /* of a fleet on trial */
	QUEUE_LEASE_MOST_S = 3600,
	QUEUE_WORKER_S = 45, /* a heartbeat is believed for so long */
	QUEUE_LEAD_S = 60, /* the worker that does what only one may do keeps it so long */
	QUEUE_WAIT_S = 5,  /* for one answer of the server */
	QUEUE_LIST_S = 30, /* the same, when it lists what is queued: 7 MB for 100,000 tasks */
	QUEUE_BATCH = 256, /* tasks that one call publishes */
	QUEUE_LANES_MAX = 256,
};

struct fleet_queue;
struct fleet_lease;

struct fleet_queue_options {
	const char *url; /* nats://HOST:PORT[,…] or tls://…, with USER:PASSWORD@ where it is needed */
	const char *name; /* the fleet's: part of every subject; NULL: "main" */
	/* a file of credentials, or one with an nkey seed and its public key; or NULL */
	const char *credentials;
	const char *ca_file, *certificate, *key; /* or NULL */
	int replicas;   /* 1, 3 or 5, of streams that are made; 0: 1 */
	double lease_s; /* of consumers that are made; 0: QUEUE_LEASE_S */
};

/* Connect and make what is missing. ERR says what the server lacks, and the remedy. */
bool fleet_queue_open(const struct fleet_queue_options *options,
		      struct fleet_queue **queue, struct err *err);
/* Tasks that came and were not taken are given back. NULL is allowed. */
void fleet_queue_close(struct fleet_queue *queue);
/*
 * Make what is missing: streams, buckets, the consumers of known lanes, the permits of lanes
 * with a limit. *MADE: streams that were not there: all tasks have to be published again.
 */
bool fleet_queue_repair(struct fleet_queue *queue, size_t *made, struct err *err);
/* Is there a connection just now? */
bool fleet_queue_connected(struct fleet_queue *queue);
/* Seconds of a lease, as the fleet's consumers have it. */
double fleet_queue_lease_s(const struct fleet_queue *queue);

/*
 * Publish COUNT (at most QUEUE_BATCH) TASKS of JOB. One that waits already, or is worked
 * on, stays as it is, and counts in *THERE. On failure some may have been published.
 */
bool fleet_queue_publish(struct fleet_queue *queue, const char *job,
			 const struct fleet_task *tasks, size_t count, size_t *there,
			 struct err *err);

/*
 * Take at most COUNT tasks of LANES (NULL-ended; NULL: all) that need no label but LABELS
 * ("NAME=VALUE", NULL-ended; NULL: none), highest priority first, each with a permit of its lane;
 * wait at most SECONDS. LEASES has room for COUNT. *TAKEN may be
 * 0. COUNT is the number of the caller's free cells: the next call must not have fewer than
 * this one had, less those that were taken, unless fleet_queue_rest was called between.
 */
bool fleet_queue_take(struct fleet_queue *queue, const char *const *lanes,
		      const char *const *labels, size_t count, double seconds,
		      struct fleet_lease **leases, size_t *taken, struct err *err);
/* Wait for no more tasks, and give back those that came meanwhile. */
void fleet_queue_rest(struct fleet_queue *queue);

const char *fleet_lease_job(const struct fleet_lease *lease);
const char *fleet_lease_id(const struct fleet_lease *lease);
/* A message as it came: its publisher has chosen all of it. Borrowed from the lease. */
struct fleet_message {
	struct str line;
	int version; /* the format that its line has, as it says (FLEET_LINE_FORMAT) */
	/* Where it stood in the queue, as fleet_queue_place says it: by that it has its lane,
	 * whose permit the lease has. */
	const char *place;
};
struct fleet_message fleet_lease_message(const struct fleet_lease *lease);
/*
 * From 1; more than the task's attempts: the caller writes "gave_up". Deliveries that were
 * given back without having been begun do not count.
 */
int fleet_lease_deliveries(const struct fleet_lease *lease);
/* How often it was given back as FLEET_UNREAD. */
int fleet_lease_refusals(const struct fleet_lease *lease);

enum fleet_renewal {
	FLEET_RENEWED,
	FLEET_UNSURE, /* the server did not answer; the lease may still be renewed */
	FLEET_LOST, /* not renewed in time: somebody else has the task, and the run must end */
};
/* Was it not renewed in time, so that somebody else may have the task? Asks nobody. */
bool fleet_lease_over(const struct fleet_lease *lease);
/* "In progress", for the task and its permit; confirmed. ERR says why it is not renewed. */
enum fleet_renewal fleet_lease_renew(struct fleet_lease *lease, struct err *err);
/*
 * The result is in the store: tell those who look on, take the task from the queue,
 * confirmed, and give the permit back. False: not confirmed; call it again, or leave it: the
 * task comes again, and its result is found in the store.
 */
bool fleet_lease_done(struct fleet_lease *lease, const struct value *result,
		      struct err *err);
enum fleet_return {
	FLEET_TRIED,   /* the delivery was an attempt */
	FLEET_UNTRIED, /* it was none */
	FLEET_UNREAD, /* the caller cannot read the task: that is counted apart from attempts */
};
/*
 * Give it back, to come again after SECONDS. A lease that is over stays as it is, here and in
 * fleet_lease_done its permit.
 */
void fleet_lease_return(struct fleet_lease *lease, double seconds, enum fleet_return how);
/* Take the task out of the queue without a result. The permit goes back. */
bool fleet_lease_drop(struct fleet_lease *lease, struct err *err);
/* Free the memory; the task stays as it is. NULL is allowed. */
void fleet_lease_free(struct fleet_lease *lease);

/*
 * At most PERMITS tasks of LANE at the same time over the whole fleet, 0: as many as there are
 * cells; and PER_MINUTE tasks begun in a minute, 0: no such limit.
 */
bool fleet_queue_limit(struct fleet_queue *queue, const char *lane, int permits,
		       int per_minute, struct err *err);
/* The tasks of LANE that may be begun in a minute; 0: no limit. *PERMITS: that may run, likewise. */
int fleet_queue_per_minute(struct fleet_queue *queue, const char *lane, int *permits);

/* Keys and values that the queue keeps. */
enum fleet_bucket {
	FLEET_STATE,   /* for ever: cancels, pauses, limits of lanes */
	FLEET_WORKERS, /* QUEUE_WORKER_S: heartbeats */
	FLEET_LEAD,    /* QUEUE_LEAD_S */
};
/* VALUE is JSON. Keys are letters, digits and "._-". */
bool fleet_queue_set(struct fleet_queue *queue, enum fleet_bucket bucket, const char *key,
		     struct str value, struct err *err);
/* *VALUE (owned) is NULL when there is none. */
bool fleet_queue_get(struct fleet_queue *queue, enum fleet_bucket bucket, const char *key,
		     struct value **value, struct err *err);
bool fleet_queue_unset(struct fleet_queue *queue, enum fleet_bucket bucket,
		       const char *key, struct err *err);
/* Set KEY when it is free or has this VALUE already. */
bool fleet_queue_claim(struct fleet_queue *queue, enum fleet_bucket bucket,
		       const char *key, struct str value, bool *mine, struct err *err);
/* Tell TAKE all keys that begin with PREFIX ("" or up to a dot), until it says false. */
bool fleet_queue_keys(struct fleet_queue *queue, enum fleet_bucket bucket,
		      const char *prefix,
		      bool (*take)(void *context, const char *key, struct str value),
		      void *context, struct err *err);

/* An event of a task, for those who look on; not confirmed. */
void fleet_queue_tell(struct fleet_queue *queue, const char *job, const char *id,
		      struct str event);
/*
 * Events or results of JOB (and ID, or NULL), from the oldest that is kept: to the newest, or
 * with FOLLOW until TAKE says false. While nothing comes, TAKE is called each second with
 * ID NULL. A server that goes away is waited for.
 */
enum fleet_watch { FLEET_WATCH_EVENTS, FLEET_WATCH_RESULTS };
bool fleet_queue_watch(struct fleet_queue *queue, enum fleet_watch what, const char *job,
		       const char *id, bool follow,
		       bool (*take)(void *context, const char *id, struct str text),
		       void *context, struct err *err);

/* Messages of JOB that wait or are worked on: their ids and places to TAKE. */
bool fleet_queue_waiting(struct fleet_queue *queue, const char *job,
			 bool (*take)(void *context, const char *id, const char *place),
			 void *context, struct err *err);
/*
 * The place of TASK of JOB by its lane, needs and priority, owned by the caller. It ends with the
 * task's id.
 */
char *fleet_queue_place(const struct fleet_queue *queue, const char *job,
			const struct fleet_task *task);
/* Take the message at PLACE out of the queue. */
bool fleet_queue_remove(struct fleet_queue *queue, const char *place, struct err *err);
/* Take ID of JOB (NULL: all of it) out of the queue. *REMOVED may be NULL. */
bool fleet_queue_purge(struct fleet_queue *queue, const char *job, const char *id,
		       uint64_t *removed, struct err *err);
/* Forget what was told of the result of ID, which is to be made again, and how often it came back. */
bool fleet_queue_forget(struct fleet_queue *queue, const char *job, const char *id,
			struct err *err);

/*
 * How sound the server is for the purpose: a list of {name, state: "ok" | "warning" | "wrong",
 * text}; each text is a sentence with what is at stake and the remedy.
 */
bool fleet_queue_examine(struct fleet_queue *queue, struct value **report, struct err *err);
/* The permissions of submitters and workers for the server's configuration, on BUF. */
bool fleet_queue_permissions(const char *name, struct buf *buf);
