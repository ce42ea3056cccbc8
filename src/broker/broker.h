/*
 * broker: the process that puts a key into a request, and the messages by which a front
 * steers it. A program of the cell sends plain HTTP to http://127.0.0.1:27183/NAME/PATH,
 * with a phantom in the place of the key. The broker judges the request, puts the key in,
 * sends it by TLS to the host of the credential NAME, and takes the key out of the answer
 * again. So no process of the cell ever has the key.
 *
 * The broker is a role of the same program, started as the proxy is (proxy/proxy.h): by
 * exec with an empty environment, for a cell that uses a credential. It has the network
 * and nothing else, and accepts on a listener that was made in the cell's network
 * namespace. It knows the credentials of one cell. The keys themselves stay with the
 * front, which reads them where the person keeps them; the broker asks for one when a
 * request needs it, and asks again for the next request, so that a login that was renewed
 * outside holds at once.
 *
 * A program that takes no other address for its service asks the proxy for a tunnel to the
 * host. Where the host is one of a credential, the proxy gives the client's socket to the
 * broker, which speaks TLS with the client in place of the host, by the certificates of the
 * cell's authority (broker/authority.h). So the same requests come by both doors.
 *
 *   front → broker   LISTENER and PROXY, then SECRET or NONE for each NEED
 *   broker → front   AUTHORITY, then READY or FAILED, then NEED for each key, REFUSED for
 *                    each refusal
 *
 * The certificate must lie in the cell's view before anything runs in it, and no file of a
 * view comes later. So the front waits for AUTHORITY before it makes the cell. The broker
 * sends it first of all, when it has read its specification: what takes time (the roots,
 * the walls) is done while the cell is made.
 *
 * The control socket is a SOCK_SEQPACKET pair. The broker exits when it closes.
 *
 * The rules for a request are broker/request.h, and what leaves an answer is broker/scrub.h. A
 * service that is down, refuses, has a wrong certificate, or answers what is no HTTP makes
 * a JSON object with status 502 or 504, whose sentence says what to do.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "policy/credential.h"
#include "policy/network.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* argv[0] of the role; its arguments: role_start_steered. */
#define BROKER_ROLE "glovebox-broker"

enum {
	/*
	 * The port of the cell's loopback. It is the same in each cell, because agents
	 * keep an address in their settings.
	 */
	BROKER_PORT = 27183,
	/* A key stands in a head of 32 KiB; the longest known ones are JWTs of 4 KiB. */
	BROKER_SECRET_MAX = 16 << 10,
	BROKER_WORDS_MAX = NETWORK_REMEDY_MAX,
	BROKER_SPEC_MAX = 4 << 20,
};

enum broker_order_kind {
	BROKER_LISTENER = 1, /* with a listening socket of the cell */
	BROKER_PROXY,        /* with the socket that brings struct proxy_handed */
	BROKER_SECRET,       /* `text` is the key of the credential `name` */
	BROKER_NONE,         /* there is no key for `name`: `text` says why */
};

/* From the front. Wipe it after use. */
struct broker_order {
	int kind;
	uint32_t size; /* of `text` */
	char name[CREDENTIAL_NAME_MAX + 1];
	char text[BROKER_SECRET_MAX];
};

enum broker_word_kind {
	/* with a file in memory: the certificate of the cell's authority, as PEM */
	BROKER_AUTHORITY = 1,
	BROKER_READY,  /* locked in */
	BROKER_FAILED, /* `text` says why; it ends */
	BROKER_NEED,   /* the key of the credential `name` */
	/* `target` was refused to a program of the cell; `text` says how to allow it */
	BROKER_REFUSED,
};

/* To the front. */
struct broker_word {
	int kind;
	char name[CREDENTIAL_NAME_MAX + 1];
	char target[NETWORK_TEXT_MAX];
	char text[BROKER_WORDS_MAX];
};

/* Send ORDER, with FD unless FD is -1. Never waits; false with errno. */
bool broker_send(int control, const struct broker_order *order, int fd);
/*
 * Receive the next word without waiting; its texts are NUL-terminated, and *FD is -1 when no
 * descriptor came with it. False with EAGAIN
 * in ERR when there is none yet, with ECONNRESET when the broker has ended.
 */
bool broker_receive(int control, struct broker_word *word, int *fd, struct err *err);

/* A credential as a cell uses it. */
struct broker_used {
	const struct credential *credential;
	const char *phantom;
	const char *const *repositories; /* as in request.h; or NULL */
};

/* The specification that a broker reads at its start, as JSON in a memory file. */
struct broker_spec {
	const struct broker_used *used;
	size_t count;
	/* entries of the policy's network, NULL-ended: see proxy/dial.h */
	const char *const *network;
	const char *resolver; /* "address" or "address:port"; NULL: the machine's own */
};
bool broker_print_spec(const struct broker_spec *spec, struct buf *out);

/*
 * To be called in main() before anything else. When this process was started as a broker,
 * the function runs the broker and never returns.
 */
void broker_role(int argc, char **argv);
