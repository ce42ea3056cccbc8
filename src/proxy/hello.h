/*
 * hello: the first message of TLS (RFC 8446, section 4.1.2), as far as it names a host.
 * However it is cut into records and reads, the name in it is the one the server sees.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"
#include "policy/network.h"

/* Post-quantum shares make it 2 KiB; a server would take no more than this either. */
enum { HELLO_MAX = 16 << 10 };

enum hello_answer { HELLO_BAD, HELLO_MORE, HELLO_GOOD };

/* Could BYTES (one at least) be the beginning of TLS? */
bool hello_begins(struct str bytes);

/*
 * Read the client's first bytes. GOOD: NAME is the host it names in lower case, "" when
 * none. MORE: not whole yet. BAD: no such message; ERR says what is wrong.
 */
enum hello_answer hello_read(struct str bytes, char name[NETWORK_NAME_MAX + 1],
			     struct err *err);
