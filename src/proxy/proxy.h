/*
 * proxy: the process that lets packets of one cell out, and the messages by which a front
 * steers it. It is a role of the same program, started by exec with an empty environment
 * for a cell whose policy lists a host; it has the network and nothing else: no file, no
 * program, no other user's rights. It accepts on listeners that were made inside the
 * cell's network namespace, reads a strict head, and connects to listed hosts only.
 *
 *   front → proxy   LISTENER for each, then GRANT before and REVOKE after each command
 *   front → proxy   DECIDED for each thing asked
 *   proxy → front   READY or FAILED, then REFUSED for each thing refused, and ASKED
 *
 * The control socket is a SOCK_SEQPACKET pair; its end is the proxy's end.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "policy/network.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* argv[0] of the role; its arguments are the numbers of three descriptors: see proxy_role. */
#define PROXY_ROLE "glovebox-proxy"
enum { PROXY_ARGUMENTS = 4 };

/* The user name in front of a token: http://glovebox:TOKEN@127.0.0.1:PORT. */
#define PROXY_USER "glovebox"
enum {
	PROXY_TOKEN = 32, /* hexadecimal digits: 128 bits of chance */
	PROXY_REMEDY_MAX = NETWORK_REMEDY_MAX,
	PROXY_SPEC_MAX = 1 << 20,
};

enum proxy_kind {
	PROXY_LISTENER = 1, /* with a listener; `port` as in a tcp:// entry, 0: requests */
	PROXY_GRANT,        /* `text` is the token of the command `call` */
	PROXY_REVOKE,       /* `call` has ended, and with it all its connections */
	PROXY_READY,        /* locked in */
	PROXY_FAILED,       /* `remedy` says why; it ends */
	/* `text` is host:port and `remedy` how to allow it; `call` 0: no one's in particular */
	PROXY_REFUSED,
	/* the same before it is refused: `connection` is held until it is decided */
	PROXY_ASKED,
	PROXY_DECIDED, /* `connection` may go on when `port` is 1 */
};

struct proxy_message {
	int kind;
	uint16_t port;
	uint64_t call;
	uint64_t connection; /* a number of the proxy's; never 0 */
	char text[NETWORK_TEXT_MAX];
	char remedy[PROXY_REMEDY_MAX];
};

/* Send MESSAGE, with FD unless that is -1; never waits. */
bool proxy_send(int control, const struct proxy_message *message, int fd);
/*
 * The next message without waiting; its texts end. *FD is -1 when none came with it. False
 * with EAGAIN in ERR when there is none yet, ECONNRESET at the end.
 */
bool proxy_receive(int control, struct proxy_message *message, int *fd, struct err *err);

/* What a proxy is told at its start, as JSON in a memory file. */
struct proxy_spec {
	const char *const *network; /* entries of the policy, NULL-ended */
	const char *rule;     /* the key they stand under: "agents.default.network" */
	const char *resolver; /* "address" or "address:port"; NULL: the machine's own */
	bool asks;            /* what no entry lists is asked for before it is refused */
};
struct buf;
bool proxy_print_spec(const struct proxy_spec *spec, struct buf *out);

/*
 * In main(), before anything else: when this process was started as a proxy, be it and
 * never return. Its arguments: the memory file of the specification, the control socket, a
 * pidfd of the front.
 */
void proxy_role(int argc, char **argv);
