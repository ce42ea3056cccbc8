/*
 * tls: both sides of TLS 1.2 or newer. As a client the broker speaks to services, and only
 * to a server whose certificate is good: its chain ends at a root of this system or of
 * `ca_file`, and it names the host. Nothing switches this off.
 *
 * As a server the broker speaks to programs of the cell, with a certificate of the cell's
 * authority for the one host of the connection. A greeting must name that host (SNI), or
 * none when the host is an address, and where it lists protocols (ALPN) HTTP/1.1 must be
 * among them. There are no tickets, no early data, no renegotiation and no certificates of
 * clients.
 *
 * OpenSSL 3 is loaded by tls_open, so that a cell without a broker pays nothing. All files
 * are read there, too, because the broker cannot open any later. Parsing the roots takes
 * 20 ms, so that is done in small steps while nobody waits (tls_prepare).
 *
 * Sockets do not block, and a function that cannot go on says for which event the caller
 * waits. A session is resumed where the server gave a ticket, which saves a round trip
 * and the check of the chain (RFC 8446, section 2.2).
 */
#pragma once

#include "base/err.h"
#include "base/library.h"
#include "policy/network.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct authority;
struct tls;
struct tls_connection;

/* The library below that of TLS. The same package has both. */
extern const struct library tls_libcrypto;

/*
 * Where distributions keep all their roots in one file; NULL-ended. The first that is there
 * is used.
 */
extern const char *const tls_bundles[];

/*
 * Load OpenSSL and read the roots. CA_FILE: further roots, as PEM; NULL: none. False when
 * the library or CA_FILE cannot be read, or when there is no root at all. *TLS lives as
 * long as the process.
 */
bool tls_open(const char *ca_file, struct tls **tls, struct err *err);

/* The same for the side of the server, with the leaves of AUTHORITY; it reads no file. */
bool tls_open_server(struct authority *authority, struct tls **tls, struct err *err);

/*
 * Parse the next roots, for about a millisecond. False when all are parsed. A handshake
 * parses those that are left by itself.
 */
bool tls_prepare(struct tls *tls);

/*
 * Begin TLS with HOST, connected at FD, which stays the caller's and must stay open until
 * tls_end. PORT belongs to the name under which the session is kept.
 */
struct tls_connection *tls_begin(struct tls *tls, int fd, const struct network_host *host,
				 uint16_t port);
/* Begin TLS with a program of the cell at FD, in place of HOST. NULL: HOST has no leaf. */
struct tls_connection *tls_accept(struct tls *tls, int fd, const struct network_host *host);
/* Say good-bye as far as the socket takes it. Nothing may be written afterwards. */
void tls_say_end(struct tls_connection *connection);
/* The same, and free CONNECTION; NULL is fine. */
void tls_end(struct tls_connection *connection);

/*
 * Each of these goes on as far as it can without waiting. When it cannot, tls_wants says
 * for what: POLLIN, POLLOUT, or 0 when the connection is broken, and tls_why says why.
 */
bool tls_handshake(struct tls_connection *connection);
/* Bytes read; 0: the other side has ended the connection properly; -1: see tls_wants. */
ssize_t tls_read(struct tls_connection *connection, void *data, size_t size);
/* Bytes written, perhaps fewer than SIZE; -1: see tls_wants. */
ssize_t tls_write(struct tls_connection *connection, const void *data, size_t size);
short tls_wants(const struct tls_connection *connection);
const char *tls_why(const struct tls_connection *connection);
/* Is it broken because the other side has gone without a word? */
bool tls_is_cut(const struct tls_connection *connection);
/* Has it read bytes from the socket that nobody has taken? No event reports them. */
bool tls_is_filled(const struct tls_connection *connection);
