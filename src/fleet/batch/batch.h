/*
 * batch: a job that one process works through, or its part of it, without any server: the
 * store alone says what is done. It gives the tasks of its shard to slots, then those of shards
 * that nobody works on; tries again what was not set up or lost its engine; and stops giving
 * out when a budget is used or too much has failed. A batch that was killed loses what ran, and
 * nothing else: the same batch again goes on.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "fleet/batch/job.h"
#include "fleet/store.h"
#include "fleet/task.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why no more tasks are given out. */
enum fleet_stop {
	FLEET_STOP_NOT,
	FLEET_STOP_DRAINED, /* fleet_batch_drain or fleet_batch_cancel */
	FLEET_STOP_MONEY,
	FLEET_STOP_TIME,
	FLEET_STOP_FAILED, /* as many results as `fail_fast` says were not "done" */
	FLEET_STOP_STORE,  /* no result can be kept, or no engine begun */
};

enum fleet_batch_news {
	FLEET_NEWS_BEGAN,
	FLEET_NEWS_LINE,  /* TEXT: what the task said */
	FLEET_NEWS_ENDED, /* RESULT; TEXT: not NULL when another result was first */
	FLEET_NEWS_AGAIN, /* TEXT: why; it comes again after SECONDS */
	FLEET_NEWS_SHARD, /* SHARD is worked on from now on */
	FLEET_NEWS_TAKEN, /* SHARD is worked on by somebody else: TEXT */
	FLEET_NEWS_WAITS, /* nothing begins because of TEXT */
	FLEET_NEWS_GOES_ON,
	FLEET_NEWS_STOPPED, /* nothing more begins because of TEXT */
};

struct fleet_batch_event {
	enum fleet_batch_news news;
	const char *id; /* of a task; or NULL */
	int attempt;
	const char *text; /* or NULL */
	const struct value *result;
	double seconds;
	size_t shard;
};

struct fleet_batch_options {
	struct fleet_store *store;
	const struct fleet_job *job;
	size_t cells;         /* 0: processors */
	size_t shard, shards; /* ours, from 0, of SHARDS */
	bool steals;          /* take over shards that nobody works on */
	unsigned retry; /* bits of enum fleet_status: such results are taken away first */
	uint64_t fail_fast; /* 0: never */
	double money;  /* that the results of this process may have cost; 0: no limit */
	double time_s; /* after which nothing begins; 0: no limit */
	const char *program, *config;
	/* Called by any thread, one at a time. */
	void (*tell)(void *context, const struct fleet_batch_event *event);
	void *context;
};

struct fleet_batch_counts {
	size_t tasks;   /* of the shards that are ours, with those taken over */
	size_t results; /* that are in the store */
	size_t ended;   /* of these by this process */
	size_t by_status[FLEET_STATUSES]; /* of results whose status is known */
	size_t running, waiting;          /* waiting: to be tried again */
	double money;                     /* of this process */
	enum fleet_stop stop;
};

struct fleet_batch;

/* Claim the shard, and begin. */
bool fleet_batch_start(const struct fleet_batch_options *options,
		       struct fleet_batch **batch, struct err *err);
/* Nothing new; what runs goes on. */
void fleet_batch_drain(struct fleet_batch *batch);
/* End what runs, in order. Nothing of it is recorded. */
void fleet_batch_cancel(struct fleet_batch *batch);
/* Nothing runs, and nothing will. */
bool fleet_batch_over(const struct fleet_batch *batch);
void fleet_batch_count(struct fleet_batch *batch, struct fleet_batch_counts *counts);
/*
 * Wait for the end, let others have its shards, read the statuses that are not known yet, and
 * free the batch. COUNTS is filled in any case; false: not all could be read.
 */
bool fleet_batch_finish(struct fleet_batch *batch, struct fleet_batch_counts *counts,
			struct err *err);
