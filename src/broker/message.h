/*
 * message: what a front and its broker say to each other over the control socket
 * (broker/broker.h), and the specification that a broker reads at its start.
 *
 * A client that renews a login (broker/refresh.h) makes the broker ask for its tokens, and
 * hand over the new ones. The client gets its answer when the front has kept them:
 *
 *	broker → front   RENEW; then FRESH, STALE, or LEFT when neither came of it
 *	front → broker   TOKENS for RENEW, or KEPT with the answer when the tokens are new;
 *	                 KEPT for FRESH and STALE; LOST for each of them
 *
 * A renewal that was sent to the service goes on to its end, also when its client has gone:
 * the service has used the old token up. Other clients that renew the same login meanwhile
 * get the same answer.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "policy/credentials/credential.h"
#include "policy/network.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum {
	/* A key stands in a head of 32 KiB; the longest known ones are JWTs of 4 KiB. */
	BROKER_SECRET_MAX = 16 << 10,
	BROKER_SPEC_MAX = 4 << 20,
};

enum broker_order_kind {
	/*
	 * with a pipe for the certificate of the cell's authority, as PEM: the first order,
	 * which waits in the socket when the broker begins
	 */
	BROKER_AUTHORITY = 1,
	BROKER_LISTENER, /* with a listening socket of the cell */
	BROKER_PROXY,    /* with the socket that brings struct proxy_handed */
	BROKER_SECRET,   /* `text` is the key of the credential `name` */
	BROKER_NONE,     /* there is no key for `name`: `text` says why */
	/* before BROKER_SECRET: `text` is refresh_tokens_print of the login `name` as it is */
	BROKER_LEARN,
	BROKER_TOKENS, /* the same, for RENEW */
	/* the file is written; `text`, unless empty, is the answer for the client */
	BROKER_KEPT,
	BROKER_LOST,   /* the renewal has failed: `text` says why */
	BROKER_COUNTS, /* with the memory in which the broker counts (proxy/counts.h) */
};

/* From the front. Wipe it after use. */
struct broker_order {
	int kind;
	uint32_t size; /* of `text` */
	char name[CREDENTIAL_NAME_MAX + 1];
	char text[BROKER_SECRET_MAX];
};

enum broker_word_kind {
	BROKER_READY = 1, /* locked in */
	BROKER_FAILED,    /* `text` says why; it ends */
	BROKER_NEED,      /* the key of the credential `name` */
	/* `target` was refused to a program of the cell; `text` says how to allow it */
	BROKER_REFUSED,
	BROKER_RENEW, /* the tokens of the login `name`, which stays locked from now on */
	BROKER_FRESH, /* `text` is refresh_tokens_print of the new ones */
	BROKER_STALE, /* the service does not take those that were sent */
	BROKER_LEFT,  /* the renewal has ended without new ones */
};

/* To the front, up to the end of `text`. Wipe it after BROKER_FRESH. */
struct broker_word {
	int kind;
	char name[CREDENTIAL_NAME_MAX + 1];
	char target[NETWORK_TEXT_MAX];
	char text[BROKER_SECRET_MAX];
};

/* Send ORDER, with FD unless FD is -1. Never waits; false with errno. */
bool broker_message_send(int control, const struct broker_order *order, int fd);
/*
 * Receive the next word without waiting; its texts are NUL-terminated, and *FD is -1 when no
 * descriptor came with it. False with EAGAIN in ERR when there is none yet, with ECONNRESET
 * when the broker has ended.
 */
bool broker_message_receive(int control, struct broker_word *word, int *fd, struct err *err);

/* A credential as a cell uses it. */
struct broker_used {
	const struct credential *credential;
	const char *phantom;
	const char *const *repositories; /* as in broker/request.h; or NULL */
	const char *const *phantoms;     /* as in broker/refresh.h; or NULL */
};

/* The specification that a broker reads at its start, as JSON in a memory file. */
struct broker_spec {
	const struct broker_used *used;
	size_t count;
	/* entries of the policy's network, NULL-ended: see proxy/dial.h */
	const char *const *network;
	const char *resolver; /* "address" or "address:port"; NULL: the machine's own */
};
bool broker_message_print_spec(const struct broker_spec *spec, struct buf *out);
