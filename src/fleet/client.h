/*
 * client: a caller of an engine (docs/serve.md) in C. The engine is our own program, begun
 * with `serve --stdio` and ended with its client: also when the client is killed, because
 * its input ends. Any number of threads call at the same time; one thread of the client
 * reads the answers and the notices.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>
#include <sys/types.h>

struct fleet_client;

/*
 * A failed call: the kind of docs/serve.md ("set_up", "denied", …) and the rule, or ""; the
 * sentence ends with the remedy, and its code is the error of the system that the engine
 * names. The kinds of the client itself are "timed_out", "cancelled", and "closed": the engine
 * is gone, and the sentence has its last words.
 */
struct fleet_refusal {
	char kind[16];
	char rule[64];
	struct err err;
};

/*
 * Start PROGRAM, our own, as an engine, and greet it. OPTIONS: at most 16 further words of
 * `serve`, ended by NULL, or NULL.
 */
bool fleet_client_start(const char *program, const char *const *options,
			struct fleet_client **client, struct err *err);

/*
 * The variables of our process for an engine or `wrap`: without those of AWS, which are the store's
 * and could come into a cell. NULL-ended; the caller frees the list, not its texts.
 */
const char **fleet_client_environment(void);
/* A pidfd of our child PID. -1: there is none, so that the child was killed and reaped. */
int fleet_client_pidfd(pid_t pid, struct err *err);

/*
 * Call METHOD with PARAMS (taken over) and wait for its answer, at most SECONDS (0: as long
 * as the engine lives); then `$/cancel` is sent, which is given 5 seconds, and REFUSAL has the
 * kind "timed_out". When *CANCEL (may be NULL) becomes true and fleet_client_wake is called, the
 * same with the kind "cancelled". A call that the engine is too busy for is made again for a
 * minute. A line that is sent has at most 16 MiB ("usage"), an answer 64 ("limit"). *ANSWER is
 * owned by the caller.
 */
bool fleet_client_call(struct fleet_client *client, const char *method,
		       struct value *params, double seconds, const bool *cancel,
		       struct value **answer, struct fleet_refusal *refusal);
void fleet_client_wake(struct fleet_client *client);

/*
 * Take the notices of one cell: called by the reading thread, which must not wait in TAKE, and
 * not call the client. NULL ends it: TAKE is not called any more when the function returns. Only
 * the cell's own notices come.
 */
void fleet_client_watch(struct fleet_client *client, const char *cell,
			void (*take)(void *context, const char *method,
				     const struct value *params),
			void *context);

/*
 * Wait until *DONE, which a function that takes notices sets (__atomic_store_n), at most
 * SECONDS. False: REFUSAL is that of a call.
 */
bool fleet_client_wait(struct fleet_client *client, const bool *done, double seconds,
		       const bool *cancel, struct fleet_refusal *refusal);

/* The engine has ended, and every call fails with the kind "closed". */
bool fleet_client_gone(const struct fleet_client *client);
/* End the engine with its cells, within 5 s, and free the client. */
void fleet_client_stop(struct fleet_client *client);
