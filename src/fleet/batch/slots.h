/*
 * slots: N tasks beside each other. One engine for all of them; it is begun again when it
 * was lost, and what ran in it is then answered as a lost worker: it comes again. A fresh
 * task waits for memory and disk: not asking is the only backpressure that there is.
 *
 * The result of a task that has ended is put into the store here, so that nothing else has to
 * know the order of blobs and results. Four ends leave no record, because the task may be done
 * again: "set_up" while there are attempts (the last one is recorded as "gave_up"), an engine
 * that was lost (likewise), "cancelled" by fleet_slots_cancel without a job, and a store that
 * did not take it.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "fleet/store.h"
#include "fleet/task.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	FLEET_SLOTS_MAX = 4096,
	FLEET_PACE_MAX = 64, /* bytes of a pipe's name */
};

struct fleet_slots;

/* One task that was given out. */
struct fleet_slot_task {
	struct fleet_task task;
	char job[FLEET_NAME_MAX + 1];
	int attempt; /* from 1; 0 is an attempt that is known to be one too many: "gave_up" */
	void *own;                 /* of who gave it */
	char pace[FLEET_PACE_MAX]; /* as fleet_work has it; "": none */
};

enum fleet_next { FLEET_NEXT_TASK, FLEET_NEXT_NONE, FLEET_NEXT_FAILED };

struct fleet_slots_options {
	size_t count; /* of slots; 0: processors, at most FLEET_SLOTS_MAX */
	const char *program;
	const char *worker;
	const char *config; /* for the engine, or NULL */
	struct fleet_store *store;
	/*
	 * Give the next task, within a second or so; NONE with *OVER: there will be no more. FAILED
	 * is as NONE, with a sentence for `waits`. Called by any slot, one at a time.
	 */
	enum fleet_next (*next)(void *context, struct fleet_slot_task *task, bool *over,
				struct err *err);
	/*
	 * TASK has ended with RESULT (borrowed), whose record is in the store unless *THERE says that another
	 * one was first, or it is one of the ends that leave none. NULL: its engine was lost
	 * (ERR has ECONNRESET), no store took it, or no engine could be begun. Called by any
	 * slot. TASK is freed afterwards.
	 */
	void (*ended)(void *context, struct fleet_slot_task *task,
		      const struct value *result, bool there, const struct err *err);
	void (*tell)(void *context, const struct fleet_slot_task *task, const char *line);
	/* As in fleet/work.h; may be NULL. */
	void (*asked)(void *context, const struct fleet_slot_task *task, bool limited);
	/* Nothing is begun because of WHY; NULL: no more. May be NULL itself. */
	void (*waits)(void *context, const char *why);
	void *context;
};

bool fleet_slots_start(const struct fleet_slots_options *options,
		       struct fleet_slots **slots, struct err *err);
/* No new tasks; what runs goes on. */
void fleet_slots_drain(struct fleet_slots *slots);
/* End what runs, in order; its tasks are answered as cancelled. ID NULL: all of them. JOB NULL: drain, too. */
void fleet_slots_cancel(struct fleet_slots *slots, const char *job, const char *id);
/* End what runs of ID, because somebody else may have it by now: no record of it. */
void fleet_slots_lose(struct fleet_slots *slots, const char *job, const char *id);
size_t fleet_slots_busy(const struct fleet_slots *slots);
size_t fleet_slots_count(const struct fleet_slots *slots);
/* Nothing runs, and nothing will. */
bool fleet_slots_over(const struct fleet_slots *slots);
/* Wait until all is over. One thread calls it; others may call all but fleet_slots_finish. */
void fleet_slots_join(struct fleet_slots *slots);
/* Wait until all is over, then free: no other thread may use SLOTS any more. */
void fleet_slots_finish(struct fleet_slots *slots);
