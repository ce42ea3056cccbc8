/*
 * resolver: finds the addresses of a listed name without blocking and without reading a
 * file. It looks in the names that were read at the start, then asks the servers over UDP
 * and TCP, with a new random number and port for each question.
 */
#pragma once
#include "base/buf.h"
#include "proxy/dns.h"
#include "proxy/names.h"
#include "proxy/poller.h"

#include <stdbool.h>
#include <stddef.h>

enum { RESOLVER_ADDRESSES_MAX = 2 * DNS_ADDRESSES_MAX };

struct resolver {
	struct poller *poller;
	struct names names;
};

struct lookup;

/* One question under way: for one name, of one type. */
struct query {
	struct lookup *lookup;
	enum dns_type type;
	struct source source;
	struct moment moment;
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
