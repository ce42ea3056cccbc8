/*
 * work: one task, done whole: base and workspace, the setup, the run, the check, and what of
 * it is kept. All of it runs in cells of an engine (fleet/client.h); the model is asked by the
 * engine, outside of them. Blocking: one thread for one task.
 *
 * The result is complete when fleet_work_do returns: its blobs are in the store, its record is
 * not, which the caller writes (fleet_store_put, FLEET_IF_NEW). A run that failed is a result. A
 * task that is to be tried again has the status "set_up" and says why: nothing of it has run, its
 * engine is gone (fleet_client_gone), its model is down, or the store took no blob of it.
 *
 * The parts are in the folder steps/: site.c opens the cell over the task's files, step.c makes
 * the calls of its engine, wrapped.c starts somebody else's agent, collect.c keeps what is wanted.
 */
#pragma once

#include "fleet/client.h"
#include "fleet/store.h"
#include "fleet/task.h"

#include <stdbool.h>

struct fleet_work {
	struct fleet_client *client;
	struct fleet_store *store; /* for blobs, and archives that are blobs */
	const char *program;       /* our own, for `wrap` */
	const char *config; /* the configuration of its engine, for `wrap`; or NULL */
	const char *job;
	const char *worker; /* a name of this process among others */
	const struct fleet_task *task;
	int attempt;        /* from 1 */
	const char *pace;   /* of a run of our own agent, as run/start has it; or NULL */
	const bool *cancel; /* set, then fleet_client_wake: the run ends in order */
	/* Lines for somebody who looks on; may be NULL. Called by this thread and the reader. */
	void (*tell)(void *context, const char *line);
	/*
	 * A run of our own agent has asked its model once more. LIMITED: and was told that there were
	 * too many requests. May be NULL. Called by the reader.
	 */
	void (*asked)(void *context, bool limited);
	void *context;
};

/* The result, owned by the caller; never NULL: what went wrong is in it. */
struct value *fleet_work_do(const struct fleet_work *work);
