/*
 * authority: the certificate authority of one cell. With its certificates the broker
 * stands in for the hosts of the cell's credentials, so that it can put keys into requests
 * of programs that take no other address for their service. The cell trusts it for these
 * hosts only, and nothing outside of the cell knows it.
 *
 * The private key is made at the start of the broker, in locked memory of its own process,
 * and never leaves it. The certificate (RFC 5280) limits what the key is good for even if
 * somebody had it:
 *
 *	basicConstraints  a certificate authority with path length 0: leaves only
 *	keyUsage          keyCertSign
 *	nameConstraints   critical (section 4.2.1.10). Names: the hosts of the credentials; a
 *	                  name allows its subdomains, too, which cannot be said otherwise.
 *	                  Addresses: those of the hosts. Where there is no name, "invalid" is
 *	                  allowed, a domain that never exists (RFC 6761); where there is no
 *	                  address, all addresses are excluded. A form of names that is not
 *	                  mentioned would be free.
 *	key identifiers   in both certificates, as clients that check strictly want
 *	                  (Python 3.13)
 *	validity          a year: no cell lives as long. It begins an hour ago, because a clock
 *	                  that is set back would make the certificate one of the future.
 *
 * A leaf names one host, is for servers only (extendedKeyUsage) and is valid for 24 hours;
 * after 12 of them the next connection gets a new one. All leaves have one key, which is
 * made beside the authority's. Curve P-256 and ECDSA with SHA-256 are what every TLS 1.2
 * client speaks. A serial number has 127 random bits (section 4.1.2.2 allows 159).
 *
 * Certificates are written here as DER. So each byte of them is ours, and no name of a
 * host passes through a grammar of extensions.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "policy/network.h"

#include <stdbool.h>
#include <stddef.h>

struct authority;

enum {
	/* 1,024 hosts with names of 100 letters: above the credentials that a policy lists. */
	AUTHORITY_MAX = 256 << 10,
};

/*
 * Load OpenSSL's libcrypto and make an authority for COUNT HOSTS. Must be called before
 * the process locks itself in. *AUTHORITY lives as long as the process.
 */
bool authority_new(const struct network_entry *hosts, size_t count,
		   struct authority **authority, struct err *err);

/* Append the certificate of the authority as PEM. False when OUT is full. */
bool authority_print(const struct authority *authority, struct buf *out);

/*
 * The certificate for HOST as DER; it stays as it is until the next call. Empty when HOST
 * is none of the authority's, or when signing fails.
 */
struct str authority_leaf(struct authority *authority, const struct network_host *host);

/* The key of all leaves, an EVP_PKEY of OpenSSL, which stays the authority's. */
void *authority_leaf_key(const struct authority *authority);
