/*
 * connection: sockets to checked addresses.
 *
 * A connection is a state machine: its head or greeting is read, its host is looked
 * up, the addresses are checked, one is connected, and then bytes are relayed.
 */
#pragma once

#include "base/buf.h"
#include "policy/network.h"
#include "proxy/http.h"
#include "proxy/poller.h"
#include "proxy/proxy.h"
#include "proxy/resolver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Classifies addresses. A host name may lead to public addresses only. */

enum address_kind {
	ADDRESS_PUBLIC = 1,
	ADDRESS_PRIVATE, /* RFC 1918, shared (RFC 6598), unique local (RFC 4193) */
	ADDRESS_LOOPBACK,
	ADDRESS_LINK_LOCAL,
	ADDRESS_METADATA, /* where clouds hand out credentials */
	ADDRESS_MULTICAST,
	ADDRESS_SPECIAL, /* unspecified, reserved, documentation, benchmarks */
	ADDRESS_WRAPPED, /* an IPv4 address in an IPv6 one: mapped, 6to4, NAT64, Teredo */
};

/* HOST is an address, not a name. */
enum address_kind address_kind(const struct network_host *host);
/*
 * The kind with its article, for a sentence that refuses the address: "a private
 * address". A public address is refused only when it is an address of this machine.
 */
const char *address_kind_name(enum address_kind kind);

/* The inside of a proxy, shared by proxy/ only. */

enum {
	/*
	 * Each needs two sockets, and a few more for the resolver. Further clients wait
	 * in the backlog.
	 */
	CONNECTIONS_MAX = 512,
	/* of one read; also the most that waits for a slow reader */
	COPY_BYTES = 64 << 10,
	GRANTS_MAX = 4096, /* one cell runs far fewer commands at the same time */
	/*
	 * A client names its host immediately. One that does not is closed after this
	 * time.
	 */
	HELLO_MS = 900,
	LEAVE_MS = 2000, /* an answer is small, and its reader runs on the same machine */
	REPORTS_MAX = 32, /* refusals reported for one command; a result shows fewer */
	/* The front has a shorter limit. This one is for a front that never answers. */
	ASKING_MS = 10 * 60 * 1000,
};

/* The right of one command to ask. */
struct grant {
	uint64_t call;
	char token[PROXY_TOKEN];
	unsigned reports;
};

struct listener {
	struct proxy *proxy;
	/* the tcp:// entry it serves; NULL: proxy requests */
	const struct network_entry *entry;
	struct source source;
};

struct proxy {
	struct poller poller;
	struct resolver resolver;
	struct source control;
	struct network_entry *entries;
	size_t entry_count;
	char *rule;
	bool asks;
	uint64_t last_asked; /* the number of the connection that asked last */
	struct grant *grants;
	size_t grant_count;
	unsigned carried_reports;
	struct listener listeners[1 + NETWORK_CARRIED_MAX];
	size_t listener_count;
	struct connection *connections;
	size_t connection_count;
	struct connection *dead; /* freed when the turn is over */
	char scratch[COPY_BYTES];
};

enum connection_state {
	READING_HEAD = 1, /* of a request */
	ASKING,           /* whether it may go on */
	FINDING,          /* its addresses */
	DIALING,          /* one after the other */
	/* the client's first bytes, which name the host, before they go on */
	READING_HELLO,
	RELAYING,
	LEAVING, /* the whole answer was sent or queued; the client still reads it */
};

/* Bytes on their way in one direction. */
struct stream {
	struct buf pending; /* read, not yet taken by the other side */
	bool ended;         /* nothing more is read */
	bool passed;        /* and the end was passed on to the other side */
};

struct connection {
	struct proxy *proxy;
	struct connection *next, *previous;
	enum connection_state state;
	const struct network_entry *entry; /* that allows the connection */
	struct network_entry allowed; /* used as that entry when a person allowed it */
	uint64_t asked; /* its number in the question to the front; 0: nobody was asked */
	struct network_host host;
	uint16_t port;
	uint64_t call;    /* the call of its grant; 0: it came by a tcp:// listener */
	bool plain;       /* a plain request: one body, one answer */
	bool needs_hello; /* nothing comes back before the client has named its host */
	struct source client, server;
	struct moment deadline;
	struct buf head;       /* bytes of the client that are not parsed yet */
	struct stream out, in; /* to the server, to the client */
	struct body body;
	struct lookup lookup;
	size_t dialed; /* addresses */
	bool refused;  /* an address was refused; `why` says so if no other connects */
	char why[PROXY_REMEDY_MAX];
};

/* A connection from accept to its end. */
void connection_accept(struct listener *listener);
/* End all connections of CALL. */
void connection_end_all(struct proxy *proxy, uint64_t call);
void connection_free_dead(struct proxy *proxy);
/* The connection that asked under NUMBER may go on, or not. */
void connection_client_decided(struct proxy *proxy, uint64_t number, bool yes);
