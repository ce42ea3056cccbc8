/*
 * network: the grammar of hosts, strict and pure, and the list in a policy's `network`.
 * The same functions read the policy, `--allow-host` and the hosts that a program
 * inside the cell requests from the proxy, so that a text cannot be understood in two
 * ways.
 *
 * An entry is `host`, `host:port`, `*.suffix`, `*.suffix:port` or `tcp://host:port`; the
 * port is 443 unless given. A host is an ASCII name (RFC 1123), an IPv4 address as four
 * decimal numbers, or an IPv6 address in brackets. Everything else that some program
 * somewhere takes for an address (2130706433, 0x7f.1, 0177.0.0.1, 127.1) is refused.
 *
 * `publish` in a policy and --publish list the other direction: ports of the cell that this
 * machine reaches. An entry is `[own:|ADDRESS:][HOST:]PORT`.
 *
 * Which addresses a name may lead to is decided by proxy/dial.c. A new rule for
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
	/* a list is written by hand, and every request searches it */
	NETWORK_ENTRIES_MAX = 256,
	/* `tcp://` entries: each needs a listener in the cell */
	NETWORK_CARRIED_MAX = 32,
	/* ports of one cell: each has a listener outside */
	NETWORK_PUBLISHED_MAX = 64,
	NETWORK_REMEDY_MAX = 600, /* an entry twice, and some words */
};

enum network_kind { NETWORK_NAME = 1, NETWORK_IPV4, NETWORK_IPV6 };

struct network_host {
	enum network_kind kind;
	/* in lower case; an address in its canonical form, without brackets */
	char text[NETWORK_NAME_MAX + 1];
	unsigned char address[NETWORK_ADDRESS]; /* network order; for addresses */
};

struct network_entry {
	struct network_host host; /* for a suffix: the part behind "*." */
	uint16_t port;
	bool suffix;
	bool carried; /* has tcp:// */
	bool ported;  /* names its port */
};

/* Read a host as it stands before a port: an IPv6 address in brackets. */
bool network_parse_host(struct str text, struct network_host *host, struct err *err);

/* Read "host:port", or "host" when DEFAULT_PORT is not 0. */
bool network_parse_authority(struct str text, uint16_t default_port,
			     struct network_host *host, uint16_t *port, struct err *err);

/* Read one entry of a policy. ERR names the broken rule, without repeating the entry. */
bool network_parse_entry(struct str text, struct network_entry *entry, struct err *err);

/* Read a port: 1 to 65535, no sign, no leading zero. */
bool network_parse_port(struct str text, uint16_t *port);

/* Print HOST as it stands before a port, with PORT. Returns TEXT. */
char *network_print(const struct network_host *host, uint16_t port,
		    char text[NETWORK_TEXT_MAX]);

/*
 * Print the entry of a list that would let HOST and PORT through a proxy. Returns TEXT.
 */
char *network_print_entry(const struct network_host *host, uint16_t port,
			  char text[NETWORK_TEXT_MAX]);

/* The key of a policy in that clause, and what is said instead (policy_words). */
#define NETWORK_REMEDY_KEY " to network, or "

/*
 * Print the clause that tells how to list ENTRY. Every refusal of a host ends with it.
 * Returns TEXT.
 */
char *network_print_remedy(const char *entry, char text[NETWORK_REMEDY_MAX]);

bool network_same_host(const struct network_host *a, const struct network_host *b);

/*
 * The entry that lets a request for HOST and PORT through, or NULL. `tcp://` entries
 * never do.
 */
const struct network_entry *network_find(const struct network_entry *entries, size_t count,
					 const struct network_host *host, uint16_t port);

/* Do all packets to HOST, a name or an address, stay on this machine? */
bool network_is_loopback(const struct network_host *host);

/* Does ENTRY let through everything that PART lets through? */
bool network_covers(const struct network_entry *entry, const struct network_entry *part);

/*
 * The harm that a process can do to this machine when it reaches ENTRY, a tcp:// entry for
 * a port of the loopback ("starts containers with the rights of root"). Only the
 * configuration may list such an entry, no flag. NULL for every other entry.
 */
const char *network_hands_over(const struct network_entry *entry);

/* The address at which the front listens for a published port. */
enum network_listens {
	LISTENS_LOOPBACK = 1, /* 127.0.0.1 */
	LISTENS_OWN,          /* an address of the loopback that belongs to the project */
	LISTENS_ADDRESS,      /* another one; only the configuration may list it */
};

struct network_publish {
	enum network_listens at;
	struct network_host address; /* with LISTENS_OWN not filled in */
	uint16_t host_port;          /* 0: any free one */
	uint16_t port;               /* on the loopback of the cell */
};

/* Read "[own:|ADDRESS:][HOST:]PORT". ERR names the broken rule. */
bool network_parse_publish(struct str text, struct network_publish *publish,
			   struct err *err);

/* Do A and B say the same? */
bool network_same_publish(const struct network_publish *a, const struct network_publish *b);

/* False when two of COUNT entries want one port of one address outside. */
bool network_check_publish(const struct network_publish *entries, size_t count,
			   struct err *err);

/*
 * Fill ADDRESS with the address of the loopback that belongs to the project in WORKSPACE:
 * 127.x.y.z, the same for the same path, and never 127.0.0.1.
 */
void network_own_address(const char *workspace, struct network_host *address);

/*
 * False when two `tcp://` entries for different hosts have the same port, which the
 * cell's loopback has only once, or when there are more than NETWORK_CARRIED_MAX such
 * entries.
 */
bool network_check_ports(const struct network_entry *entries, size_t count, struct err *err);

/* How a text names a host in a URL. */
struct network_said {
	uint16_t port; /* 0: no URL names the host */
	bool plain;    /* HTTP without TLS */
};

/* The first URL of HOST in TEXT: the port, and whether it is plain HTTP. */
struct network_said network_find_url(struct str text, const char *host);
