/*
 * slots: N tasks beside each other. One engine for all of them; it is begun again when it
 * was lost, and what ran in it is then answered as a lost worker: it comes again. A fresh
 * task waits for memory and disk: not asking is the only backpressure that there is.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "fleet/store.h"
#include "fleet/task.h"

#include <stdbool.h>
#include <stddef.h>

struct fleet_slots;

/* One task that was given out. */
struct fleet_slot_task {
	struct fleet_task task;
	char job[FLEET_NAME_MAX + 1];
	int attempt;
	void *own; /* of who gave it */
};

enum fleet_next { FLEET_NEXT_TASK, FLEET_NEXT_NONE, FLEET_NEXT_FAILED };

struct fleet_slots_options {
	size_t count; /* of slots; 0: processors, at most 4,096 */
	const char *program;
	const char *worker;
	const char *config; /* for the engine, or NULL */
	struct fleet_store *store;
	/*
	 * Give the next task, within a second or so; NONE with *OVER: there will be no more. Called
	 * by any slot, one at a time.
	 */
	enum fleet_next (*next)(void *context, struct fleet_slot_task *task, bool *over,
				struct err *err);
	/*
	 * TASK has ended with RESULT (borrowed), whose record is in the store unless *THERE says that another
	 * one was first; NULL: its engine was lost, or no store took it (ERR). Called by any slot.
	 */
	void (*ended)(void *context, struct fleet_slot_task *task,
		      const struct value *result, bool there, const struct err *err);
	void (*tell)(void *context, const struct fleet_slot_task *task, const char *line);
	void *context;
};

bool fleet_slots_start(const struct fleet_slots_options *options,
		       struct fleet_slots **slots, struct err *err);
/* No new tasks; what runs goes on. */
void fleet_slots_drain(struct fleet_slots *slots);
/* End what runs, in order; its tasks are answered as cancelled. ID NULL: all of them. */
void fleet_slots_cancel(struct fleet_slots *slots, const char *job, const char *id);
size_t fleet_slots_busy(const struct fleet_slots *slots);
/* Wait until all is over, then free. */
void fleet_slots_finish(struct fleet_slots *slots);
