/*
 * proxy: the process that lets packets of one cell out, and the messages by which a front
 * steers it. It is a role of the same program, started by exec with an empty environment
 * for a cell whose policy lists a host or asks for hosts. The proxy has the network and
 * nothing else: no file, no program, no other user's rights. It accepts on listeners that
 * were made inside the cell's network namespace, reads a strict head, and connects only
 * to hosts that are listed or that a person allowed. For published ports it also accepts
 * on listeners of this machine, and leads each connection to the same loopback in the
 * cell, by a socket that the anchor makes there.
 *
 *   front → proxy   LISTENER for each, then GRANT before and REVOKE after each command
 *   front → proxy   DECIDED for each thing asked
 *   front → proxy   PUBLISHED for each published port, and INLET
 *   front → proxy   BROKER, where the cell uses a credential
 *   front → proxy   COUNTS, the memory in which the proxy counts (counts.h)
 *   proxy → front   READY or FAILED, then REFUSED for each thing refused, and ASKED
 *
 * The control socket is a SOCK_SEQPACKET pair. The proxy exits when it closes.
 *
 * A host that a credential of the cell is for is never dialled here: the proxy gives the
 * client's socket to the broker (broker/broker.h), which speaks TLS with the client. So no
 * key and no TLS is in this process. Other ports of such a host, and HTTP without TLS, are
 * refused, because a program could reach the host there with somebody else's key; a tcp://
 * entry leads to another service on it.
 *
 * The module holds the messages, the specification, and the role with its connections.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "policy/network.h"
#include "proxy/http.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/*
 * argv[0] of the role; its arguments are the numbers of three descriptors: see
 * proxy_role.
 */
#define PROXY_ROLE "glovebox-proxy"

enum {
	PROXY_REMEDY_MAX = NETWORK_REMEDY_MAX,
	PROXY_SPEC_MAX = 1 << 20,
};

enum proxy_kind {
	/* with a listening socket; `port` of a tcp:// entry, or 0: proxy requests */
	PROXY_LISTENER = 1,
	PROXY_GRANT,  /* `text` is the token of the command `call` */
	PROXY_REVOKE, /* `call` has ended, and with it all its connections */
	PROXY_READY,  /* locked in */
	PROXY_FAILED, /* `remedy` says why; it ends */
	/*
	 * `text` is host:port, `remedy` says how to allow it; `call` 0: of no particular
	 * call
	 */
	PROXY_REFUSED,
	/*
	 * `connection` waits for a decision about `text`, host:port; `remedy` as in
	 * PROXY_REFUSED
	 */
	PROXY_ASKED,
	PROXY_DECIDED, /* `connection` may go on when `port` is 1 */
	/* with a listener of this machine, for `port` of the cell */
	PROXY_PUBLISHED,
	PROXY_INLET,  /* with the socket to the anchor for struct proxy_inlet */
	PROXY_BROKER, /* with the socket to the broker for struct proxy_handed */
	PROXY_COUNTS, /* with the memory for struct counts */
};

/*
 * A client of the cell, which comes with this message: it wants TLS with TARGET. The proxy
 * has read the head of its request and no byte behind it.
 */
struct proxy_handed {
	char target[NETWORK_TEXT_MAX]; /* host:port */
	/* the client waits for the answer to its CONNECT; else it came by a tcp:// entry */
	bool tunnel;
};

/*
 * A socket of the cell's network is wanted, or comes with this message; without one, the
 * anchor could not make it. One such message is one packet.
 */
struct proxy_inlet {
	uint64_t connection; /* the proxy's number for its wish */
	uint64_t six;        /* 1: for IPv6 */
};

struct proxy_message {
	int kind;
	uint16_t port;
	uint64_t call;
	uint64_t connection; /* a number of the proxy's; never 0 */
	char text[NETWORK_TEXT_MAX];
	char remedy[PROXY_REMEDY_MAX];
};

/* Send MESSAGE, with FD unless FD is -1. Never waits. */
bool proxy_send(int control, const struct proxy_message *message, int fd);
/*
 * Receive the next message without waiting. Its texts are NUL-terminated. *FD is -1 when
 * no descriptor came with it. False with EAGAIN in ERR when there is no message yet, with
 * ECONNRESET when the other end is closed.
 */
bool proxy_receive(int control, struct proxy_message *message, int *fd, struct err *err);

/* The specification that a proxy reads at its start, as JSON in a memory file. */
struct proxy_spec {
	const char *const *network; /* entries of the policy, NULL-ended */
	const char *rule;     /* the key they stand under: "agents.default.network" */
	const char *resolver; /* "address" or "address:port"; NULL: the machine's own */
	/* host:port of the credentials of the cell, NULL-ended: clients go to the broker */
	const char *const *brokered;
	/* a person is asked about a host that no entry lists, before it is refused */
	bool asks;
};
bool proxy_print_spec(const struct proxy_spec *spec, struct buf *out);

/*
 * To be called in main() before anything else. When this process was started as a proxy,
 * the function runs the proxy and never returns. Its arguments: the memory file of the
 * specification, the control socket, a pidfd of the front.
 */
void proxy_role(int argc, char **argv);
