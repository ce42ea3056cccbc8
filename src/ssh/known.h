/*
 * known: the keys of one host, from the files in which ssh keeps the host keys that a
 * person has accepted (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"). Names may be hashed, be
 * patterns, be negated, and have a port. A key that some line marks as revoked is never
 * one of the host. A line of a certificate authority gives no key, because no certificate
 * of a host is taken.
 *
 * Pure. A line that is wrong is passed over, as ssh does.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "policy/network.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SSH_PORT = 22,
	/* One key of each kind is usual; while a host changes its keys there are more. */
	SSH_KNOWN_KEYS_MAX = 32,
};

struct ssh_known {
	struct network_host host;
	uint16_t port;
	struct buf keys, revoked; /* strings of wire.h */
	size_t count;             /* of `keys` */
	bool authority;           /* some line of an authority is for the host */
};

void ssh_known_init(struct ssh_known *known);
void ssh_known_fini(struct ssh_known *known);

/* Read "host" or "host:port" into HOST and PORT of KNOWN. ERR names the broken rule. */
bool ssh_known_set_host(struct ssh_known *known, struct str text, struct err *err);
/* Add the keys that the file TEXT has for the host of KNOWN. */
void ssh_known_read(struct ssh_known *known, struct str text);
/* Is KEY one of the host's, and not revoked? */
bool ssh_known_has(const struct ssh_known *known, struct str key);
/* Append the lines of such a file for the keys of the host; none when it has no key. */
void ssh_known_print(const struct ssh_known *known, struct buf *out);
/* "host", or "host:port" where the port is another than 22. Returns TEXT. */
char *ssh_known_name(const struct ssh_known *known, char text[NETWORK_TEXT_MAX]);
