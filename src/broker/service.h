/*
 * service: the credentials of a cell as its broker has them: the key of each one in locked
 * memory, the TLS context with its roots, and whether the front has said if there is a key.
 * One scrubber looks for all keys of the cell. The connections to the hosts, and the
 * requests that wait for a key, are the broker's (broker/broker.c).
 *
 * All lives as long as the process.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "broker/refresh.h"
#include "broker/request.h"
#include "broker/scrub.h"
#include "policy/credentials/credential.h"
#include "policy/network.h"

#include <stdbool.h>
#include <stddef.h>

struct broker;
struct client;
struct upstream;
struct value;

/* A credential and its key. */
struct service {
	struct services *all;
	struct credential credential;
	char *secret; /* BROKER_SECRET_MAX bytes of locked memory */
	size_t secret_size;
	bool asked;      /* NEED is on its way */
	bool answered;   /* the front has said once whether there is a key */
	struct tls *tls; /* with the roots of this credential */
	/* the broker's: connections that wait, the last used one first */
	struct upstream *idle;
	size_t idle_count;
	struct refresh refresh;  /* of a login */
	struct client *renewing; /* the client whose renewal is under way; or NULL */
};

struct services {
	struct broker *broker; /* whose they are */
	struct service *items;
	struct request_key *keys; /* of the same number */
	size_t count;
	struct scrub *scrub; /* of all keys of the cell */
};

/* Make the services of LIST of the specification, with a locked page or more for each key. */
bool services_make(struct services *services, const struct value *list, struct err *err);
/* Give each of them a context for TLS; those with the same further roots share one. */
bool services_open_tls(struct services *services, struct err *err);
/* *HOSTS become the hosts of all credentials; the caller frees them. Returns their number. */
size_t services_hosts(const struct services *services, struct network_entry **hosts);
/* The one of the credential NAME; NULL: there is none. */
struct service *services_find(const struct services *services, const char *name);

/*
 * Is OTHER a credential for a host of SERVICE too, of which nobody knows yet which key it
 * has? Before that an answer for SERVICE cannot be searched: another cell may have left
 * that key there.
 */
bool service_waits_for(const struct service *service, const struct service *other);
/* Is there no such other one any more? */
bool service_is_searchable(const struct service *service);
/* The key of SERVICE is SECRET now, and answers are searched for it from now on. */
void service_set_secret(struct service *service, struct str secret);
/*
 * Answers are searched for TOKENS of a login of SERVICE from now on. False: so many tokens
 * live that a further renewal would make one of them be forgotten.
 */
bool service_learn(const struct service *service, const struct refresh_tokens *tokens);
