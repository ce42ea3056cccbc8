/*
 * verify: checks that a host has signed something with its key: Ed25519, ECDSA over the
 * three curves of NIST, and RSA of 2,048 bits and more with SHA-256 or SHA-512 (RFC 8709,
 * RFC 5656, RFC 8332). No other kind is taken; SHA-1 is too weak.
 *
 * libcrypto of OpenSSL does the arithmetic, loaded when it is first needed, as
 * broker/tls.h loads libssl. `ssh-keygen -Y verify` cannot do it: it takes only signatures
 * over a text with a head of its own (SSHSIG), and a host signs the bare identifier of a
 * session.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

/*
 * Load libcrypto, and check that it tells a right signature from a wrong one. To be called
 * before the process locks itself in.
 */
bool ssh_verify_load(struct err *err);

/*
 * Is SIGNATURE one of DATA by KEY, both as ssh writes them? False also when libcrypto was
 * not loaded.
 */
bool ssh_verify(struct str key, struct str data, struct str signature);
