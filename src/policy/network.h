/*
 * network: the grammar of hosts, strict and pure, and the list that a policy's `network`
 * is. The same functions read the policy, `--allow-host` and what a program inside the cell
 * asks the proxy for, so that the two can never understand one text differently.
 *
 * An entry is `host`, `host:port`, `*.suffix`, `*.suffix:port` or `tcp://host:port`; the
 * port is 443 unless given. A host is an ASCII name (RFC 1123), an IPv4 address as four
 * decimal numbers, or an IPv6 address in brackets. Everything else that some program
 * somewhere takes for an address (2130706433, 0x7f.1, 0177.0.0.1, 127.1) is refused.
 *
 * Which addresses a name may lead to is decided by proxy/connection.c. A new rule for
 * hosts comes with its rows in docs/policy.md and cases in tests/cell/proxy.case.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NETWORK_NAME_MAX = 253, /* RFC 1035, without the final dot */
	NETWORK_TEXT_MAX = 272, /* an entry: "tcp://", name, colon, port */
	NETWORK_ADDRESS = 16,   /* bytes of the longest address */
	NETWORK_PORT_DNS = 53,
	NETWORK_PORT_HTTP = 80,
	NETWORK_PORT_TLS = 443, /* unless an entry names one */
	NETWORK_ENTRIES_MAX = 256, /* a list is written by hand and searched by each request */
	NETWORK_CARRIED_MAX = 32, /* `tcp://` entries: each is a listener in the cell */
	NETWORK_REMEDY_MAX = 600, /* an entry twice, and some words */
};

enum network_kind { NETWORK_NAME = 1, NETWORK_IPV4, NETWORK_IPV6 };

struct network_host {
	enum network_kind kind;
	/* in lower case; an address in its one canonical form, without brackets */
	char text[NETWORK_NAME_MAX + 1];
	unsigned char address[NETWORK_ADDRESS]; /* network order; of an address */
};

struct network_entry {
	struct network_host host; /* of a suffix: what stands behind "*." */
	uint16_t port;
	bool suffix;
	bool carried; /* tcp:// */
};

/* A host as it stands in front of a port: an IPv6 address in brackets. */
bool network_parse_host(struct str text, struct network_host *host, struct err *err);

/* "host:port", or "host" when DEFAULT_PORT is not 0. */
bool network_parse_authority(struct str text, uint16_t default_port,
			     struct network_host *host, uint16_t *port, struct err *err);

/* One entry of a policy. ERR says which rule it breaks, without repeating the entry. */
bool network_parse_entry(struct str text, struct network_entry *entry, struct err *err);

/* A port alone: 1 to 65535, no sign, no leading zero. */
bool network_parse_port(struct str text, uint16_t *port);

/* The host as it stands in front of a port. Returns TEXT. */
char *network_print(const struct network_host *host, uint16_t port,
		    char text[NETWORK_TEXT_MAX]);

/* The entry of a list that lets HOST and PORT through a proxy. Returns TEXT. */
char *network_print_entry(const struct network_host *host, uint16_t port,
			  char text[NETWORK_TEXT_MAX]);

/*
 * How a person lists ENTRY: the clause in which each refusal of a host ends, whoever refused it.
 * Returns TEXT.
 */
char *network_print_remedy(const char *entry, char text[NETWORK_REMEDY_MAX]);

bool network_same_host(const struct network_host *a, const struct network_host *b);

/* The entry that lets a request for HOST and PORT through, or NULL. `tcp://` ones do not. */
const struct network_entry *network_find(const struct network_entry *entries, size_t count,
					 const struct network_host *host, uint16_t port);

/* Does ENTRY let everything through that PART does? */
bool network_covers(const struct network_entry *entry, const struct network_entry *part);

/*
 * Two `tcp://` entries with one port: the cell's loopback has each only once. True when
 * there are none.
 */
bool network_check_ports(const struct network_entry *entries, size_t count, struct err *err);
