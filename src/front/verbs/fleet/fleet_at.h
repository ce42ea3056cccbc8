/*
 * fleet_at: where a fleet is, by the options of a verb and the key `fleet` of the configuration:
 * its queue, its store, its name.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "fleet/queue/queue.h"
#include "fleet/store.h"
#include "front/verb.h"
#include "policy/config.h"

#include <signal.h>
#include <stdbool.h>

#define FLEET_AT_OPTION_ROWS                                                       \
	{"fleet", 0, OPTION_TEXT, "URL",                                           \
	 "the NATS server: nats://HOST:4222, tls://…, or @FILE that has the URL"}, \
		{"store", 0, OPTION_TEXT, "STORE",                                 \
		 "a folder that all see, or s3://BUCKET/PREFIX"},                  \
		{"fleet-name", 0, OPTION_TEXT, "NAME",                             \
		 "one of several fleets (default: the job's, or main)"},           \
		{"credentials", 0, OPTION_TEXT, "FILE",                            \
		 "NATS credentials, or an nkey with its public key"},              \
		OPTION_ROW_CONFIG, OPTION_ROW_HELP

struct fleet_at {
	struct config *config;
	char *url; /* what was read from @FILE, with its password */
	struct fleet_queue_options queue_options;
	const char *name;          /* of the fleet */
	const char *where;         /* the store; NULL: none was named */
	struct fleet_queue *queue; /* NULL: not opened */
	struct fleet_store *store; /* the same */
};

/*
 * Read OPTIONS and the configuration; opens nothing. Of several fleets it is the one that
 * --fleet-name names, else the one that has JOB (NULL: no job is meant, and the name is needed).
 * ERR's code is for setup_code.
 */
bool fleet_at_read(struct fleet_at *at_fleet, const struct options *options,
		   const char *job, struct err *err);
bool fleet_at_open_queue(struct fleet_at *at_fleet, struct err *err);
bool fleet_at_open_store(struct fleet_at *at_fleet, bool writes, struct err *err);
void fleet_at_fini(struct fleet_at *at_fleet);

/* The signals by which a person ends work that goes on. */
void fleet_at_signals(sigset_t *set);
