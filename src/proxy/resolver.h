/*
 * resolver: finds the addresses of a listed name without blocking and without reading a
 * file. It looks in the names that were read at the start, then asks the servers over UDP
 * and TCP, with a new random number and port for each question.
 *
 * The proxy speaks DNS itself, because the resolver of the C library opens files at each
 * question, and c-ares 1.18 is easier to deceive. c-ares needs no file after its start, but
 * it takes a returned question for an answer, ends a lookup at a torn answer, follows an
 * alias whatever name it belongs to, and finds nothing when the alias stands behind its
 * address. All its questions of one moment leave from one port, and its query numbers leave
 * out a tenth of the values of a byte. The unit tests of this module would
 * show each of these but the last.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "policy/network.h"
#include "process/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lookup;

/*
 * The two messages a stub resolver needs (RFC 1035): a question for the addresses of
 * one name, and the answer to it. A question of another program can be read as well, to
 * report it. These functions do no input or output.
 */

enum dns_type { DNS_A = 1, DNS_AAAA = 28 };

enum {
	DNS_QUESTION_MAX = 12 + NETWORK_NAME_MAX + 2 + 4,
	/* of one kind; a host whose eight addresses all fail is down */
	DNS_ADDRESSES_MAX = 8,
	DNS_MESSAGE_MAX = 64 << 10,
};

/* Print the question for NAME (of the host grammar) into OUT. Returns its size. */
size_t resolver_dns_print_question(const char *name, enum dns_type type, uint16_t id,
				   unsigned char out[DNS_QUESTION_MAX]);

/*
 * Read the host whose addresses MESSAGE, a datagram of any client, asks for. False when
 * MESSAGE asks for something else, or for a name that no host can have.
 */
bool resolver_dns_read_question(struct str message, struct network_host *host);

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
enum dns_answer resolver_dns_read_answer(struct str message, const char *name,
					 enum dns_type type, uint16_t id,
					 struct dns_addresses *addresses);

/*
 * The name servers and search suffixes of /etc/resolv.conf and the listed names of
 * /etc/hosts. They are read once at the start, while the proxy may still read files.
 */

enum {
	NAMES_SERVERS_MAX = 3, /* MAXNS of the C library */
	NAMES_SEARCH_MAX = 6,
	NAMES_FILE_MAX = 16 << 20, /* block lists against advertisements are long */
};

struct names_host {
	char name[NETWORK_NAME_MAX + 1];
	struct network_host address;
};

struct names {
	struct network_host servers[NAMES_SERVERS_MAX];
	uint16_t port; /* of the servers */
	size_t server_count;
	char search[NAMES_SEARCH_MAX][NETWORK_NAME_MAX + 1];
	size_t search_count;
	struct names_host *hosts;
	size_t host_count;
};

void names_init(struct names *names);
void names_fini(struct names *names);

/* Read TEXT, the content of a resolv.conf. Lines that cannot be used are skipped. */
void names_read_servers(struct names *names, struct str text);
/*
 * Use the server TEXT, "address" or "address:port", instead of those. False when TEXT is
 * neither.
 */
bool names_set_server(struct names *names, const char *text);
/*
 * Read TEXT, the content of a hosts file. Only names that ENTRIES list are kept, because
 * no other name is ever looked up.
 */
void names_read_hosts(struct names *names, struct str text,
		      const struct network_entry *entries, size_t count);

/*
 * Fill NAMES from /etc/resolv.conf, unless RESOLVER ("address" or "address:port", or NULL)
 * is given, and from /etc/hosts. Missing and unreadable files count as empty.
 */
void names_load(struct names *names, const char *resolver,
		const struct network_entry *entries, size_t count);

enum { RESOLVER_ADDRESSES_MAX = 2 * DNS_ADDRESSES_MAX };

struct resolver {
	struct loop *loop;
	struct names names;
};

/* One question under way: for one name, of one type. */
struct query {
	struct lookup *lookup;
	enum dns_type type;
	struct watch watch;
	struct timer timer;
	size_t asked; /* servers, over all rounds */
	uint16_t id;
	unsigned strange; /* datagrams that were no answer to it */
	bool tcp, sent, ended, failed;
	struct buf bytes; /* over TCP: the question on its way, then the answer */
	struct dns_addresses addresses;
};

/* The caller's memory; zero it before the first start. */
struct lookup {
	struct resolver *resolver;
	char wanted[NETWORK_NAME_MAX + 1];
	char name[NETWORK_NAME_MAX + 1]; /* asked now: with a suffix or without */
	size_t suffix;                   /* the next one to be tried */
	struct query queries[2];
	struct network_host addresses[RESOLVER_ADDRESSES_MAX];
	size_t count;
	bool local; /* found on this machine, not by a server */
	bool active;
	/* COUNT is 0 when no address was found; WHY then says so */
	void (*done)(struct lookup *lookup, const char *why);
	void *context;
};

/* May call `done` before it returns. */
void resolver_look_up(struct resolver *resolver, struct lookup *lookup, const char *name);
/* Give up; `done` is not called. Allowed for a lookup that never started or has ended. */
void resolver_cancel(struct lookup *lookup);

/*
 * Begin to connect a non-blocking socket to ADDRESS and PORT. Returns -1 with errno when
 * that fails. STREAM: TCP, else UDP.
 */
int resolver_connect(const struct network_host *address, uint16_t port, bool stream);
