/*
 * hello: the first message of TLS (RFC 8446, section 4.1.2), as far as it names a host.
 * The name found is the one that the server sees, however the message is split into
 * records and reads.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "policy/network.h"

/*
 * Post-quantum key shares make the message 2 KiB long. A server would not accept more
 * than this limit either.
 */
enum { HELLO_MAX = 16 << 10 };

enum hello_answer { HELLO_BAD, HELLO_MORE, HELLO_GOOD };

/* Can BYTES (at least one) be the beginning of TLS? */
bool hello_begins(struct str bytes);

/*
 * Read the client's first bytes. GOOD: NAME is the host that the greeting names, in lower
 * case, or "" when it names none. MORE: the greeting is not complete yet. BAD: the bytes
 * are no greeting; ERR says what is wrong.
 */
enum hello_answer hello_read(struct str bytes, char name[NETWORK_NAME_MAX + 1],
			     struct err *err);
