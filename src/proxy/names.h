/*
 * names: what this machine says of names, read once at the start, before the files are out
 * of reach: the servers and search suffixes of /etc/resolv.conf and the listed names of
 * /etc/hosts.
 */
#pragma once
#include "base/str.h"
#include "policy/network.h"

#include <stddef.h>
#include <stdint.h>

enum {
	NAMES_SERVERS_MAX = 3, /* MAXNS of the C library */
	NAMES_SEARCH_MAX = 6,
	NAMES_FILE_MAX = 16 << 20, /* lists against advertisements are long */
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

/* What the text of a resolv.conf says; lines that cannot be used are passed over. */
void names_read_servers(struct names *names, struct str text);
/* "address" or "address:port", instead of those servers. False when it is neither. */
bool names_set_server(struct names *names, const char *text);
/* Of the text of a hosts file, what ENTRIES name: nothing else is ever looked up. */
void names_read_hosts(struct names *names, struct str text,
		      const struct network_entry *entries, size_t count);
