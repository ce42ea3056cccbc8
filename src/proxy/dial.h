/*
 * dial: from a listed host to a connected socket. The name is looked up once, each of its
 * addresses is checked, and those that are allowed are tried one after the other, so that
 * exactly a checked address is connected. The processes that let a cell's packets out
 * (proxy.h and the broker) dial by this module, so that one set of rules holds for both.
 *
 * A name may lead to public addresses only, and to none of this machine. The name of a
 * tcp:// entry was listed for its own sake: it may also lead to private addresses, and to
 * the loopback when /etc/hosts (or the name localhost) says so. An address that an entry
 * names itself is allowed.
 */
#pragma once

#include "policy/network.h"
#include "process/loop.h"
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

/*
 * The caller's memory; zero it before the first start. The caller fills the members of
 * the first group in before each start.
 */
struct dial {
	struct resolver *resolver;
	const struct network_entry *entries; /* of the policy */
	size_t entry_count;
	const struct network_entry *entry; /* that allows this host and port */
	struct network_host host;
	uint16_t port;
	void (*done)(struct dial *dial);
	void *context;

	/* for `done`: the connected socket, which the caller takes; or -1 and the reason */
	int fd;
	bool refused; /* `why` tells how to allow the address; else why no address connects */
	char why[NETWORK_REMEDY_MAX];

	/* used by the module only */
	bool active;
	struct lookup lookup;
	size_t dialed; /* addresses */
	struct watch watch;
	struct timer deadline;
};

/*
 * Find the host and connect. `done` is called once, perhaps before this function returns;
 * it may start DIAL again or free it.
 */
void dial_start(struct dial *dial);
/* Give up; `done` is not called. Allowed for a dial that never started or has ended. */
void dial_cancel(struct dial *dial);
