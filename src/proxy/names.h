/*
 * names: the name servers and search suffixes of /etc/resolv.conf and the listed names of
 * /etc/hosts. They are read once at the start, while the proxy may still read files.
 */
#pragma once
#include "base/str.h"
#include "policy/network.h"

#include <stddef.h>
#include <stdint.h>

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
