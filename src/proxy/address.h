/* address: classifies addresses. A host name may lead to public addresses only. */
#pragma once
#include "policy/network.h"

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

/* BYTES (4 or 16, by KIND) as a host. */
void address_make(struct network_host *host, enum network_kind kind,
		  const unsigned char *bytes);
