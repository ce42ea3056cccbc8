/*
 * dns: the two messages a stub resolver needs (RFC 1035): a question for the addresses of
 * one name, and the answer to it. A question of another program can be read as well, to
 * report it. No input or output; resolver.h sends the messages.
 *
 * The C library and others read files for each question. The proxy has no file rights, so
 * it needs a client of its own.
 */
#pragma once
#include "base/str.h"
#include "policy/network.h"

#include <stddef.h>
#include <stdint.h>

enum dns_type { DNS_A = 1, DNS_AAAA = 28 };

enum {
	DNS_QUESTION_MAX = 12 + NETWORK_NAME_MAX + 2 + 4,
	DNS_ADDRESSES_MAX = 8, /* of one kind; a host whose eight addresses all fail is down */
	DNS_MESSAGE_MAX = 64 << 10,
};

/* Print the question for NAME (of the host grammar) into OUT. Returns its size. */
size_t dns_print_question(const char *name, enum dns_type type, uint16_t id,
			  unsigned char out[DNS_QUESTION_MAX]);

/*
 * Read the host whose addresses MESSAGE, a datagram of any client, asks for. False when
 * MESSAGE asks for something else, or for a name that no host can have.
 */
bool dns_read_question(struct str message, struct network_host *host);

enum dns_answer {
	DNS_STRANGE = 0, /* no answer to this question: another query's, or malformed */
	DNS_FOUND,       /* addresses; none when the name has none of this type */
	DNS_CUT,         /* too long for a datagram: ask over TCP */
	DNS_FAILED,      /* the server could not say */
};

struct dns_addresses {
	unsigned char bytes[DNS_ADDRESSES_MAX][NETWORK_ADDRESS];
	size_t count;
};

/*
 * Read the answer in MESSAGE to the question for NAME, TYPE and ID. Aliases are followed.
 */
enum dns_answer dns_read_answer(struct str message, const char *name, enum dns_type type,
				uint16_t id, struct dns_addresses *addresses);
