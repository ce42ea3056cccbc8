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
