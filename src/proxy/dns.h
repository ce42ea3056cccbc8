/*
 * dns: the two messages a stub resolver needs (RFC 1035): a question for the addresses of
 * one name, and the answer to it. A question of somebody else's is read too, to tell of it.
 * Pure; resolver.h sends them.
 *
 * A client of our own, since the C library's and others read files at each question, and a
 * process without file rights cannot.
 */
#pragma once
#include "base/str.h"
#include "policy/network.h"

#include <stddef.h>
#include <stdint.h>

enum dns_type { DNS_A = 1, DNS_AAAA = 28 };

enum {
	DNS_QUESTION_MAX = 12 + NETWORK_NAME_MAX + 2 + 4,
	DNS_ADDRESSES_MAX = 8, /* of one kind; a host that fails at eight is down */
	DNS_MESSAGE_MAX = 64 << 10,
};

/* NAME (of the host grammar) as a question into OUT; returns its size. */
size_t dns_print_question(const char *name, enum dns_type type, uint16_t id,
			  unsigned char out[DNS_QUESTION_MAX]);

/*
 * The host that MESSAGE, a datagram of any client, asks the addresses of. False when it asks
 * for something else, or for a name that no host can have.
 */
bool dns_read_question(struct str message, struct network_host *host);

enum dns_answer {
	DNS_STRANGE = 0, /* no answer to this question: somebody else's, or malformed */
	DNS_FOUND,       /* addresses, or none: the name has no such ones */
	DNS_CUT,         /* too long for a datagram: ask over TCP */
	DNS_FAILED,      /* the server could not say */
};

struct dns_addresses {
	unsigned char bytes[DNS_ADDRESSES_MAX][NETWORK_ADDRESS];
	size_t count;
};

/* What MESSAGE says to the question of NAME, TYPE and ID; aliases are followed. */
enum dns_answer dns_read_answer(struct str message, const char *name, enum dns_type type,
				uint16_t id, struct dns_addresses *addresses);
