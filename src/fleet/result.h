/*
 * result: the one record of a task: a JSON object with the members of docs/tasks.md. The
 * first one that is written under the name of a job and an id stays (fleet/store.h).
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>

/* The end of a task. Only SET_UP is tried again, and a worker that was lost. */
enum fleet_status {
	FLEET_DONE,
	FLEET_FAILED,
	FLEET_DENIED,
	FLEET_LIMIT,
	FLEET_TIMED_OUT,
	FLEET_SET_UP,  /* nothing of it has run: base, workspace, model or cell */
	FLEET_GAVE_UP, /* all attempts were used */
	FLEET_CANCELLED,
	FLEET_STATUSES,
};

const char *fleet_status_name(enum fleet_status status);
/* FLEET_STATUSES when NAME is none. */
enum fleet_status fleet_status_of(struct str name);
/*
 * The names in TEXT, with commas between, as a set of 1 << status: those that can be tried again.
 * OPTION is for the sentence. No name is an empty set.
 */
bool fleet_status_read_set(const char *option, const char *text, unsigned *statuses,
			   struct err *err);

/*
 * A result that has its members in front: job, id, attempt, status, worker (null until it is set),
 * host, program.
 */
struct value *fleet_result_new(const char *job, const char *id, int attempt,
			       enum fleet_status status);
/* The status of a result that was read from a store; FLEET_STATUSES: it is none. */
enum fleet_status fleet_result_status(const struct value *result);
