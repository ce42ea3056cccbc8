/*
 * peer: the client's end of a connection to the broker: bytes in and out, plain or by TLS.
 * The socket does not block. Bytes that the client does not take wait in `out`, and
 * nothing more is read for it in the meantime (proxy/stream.h).
 */
#pragma once

#include "proxy/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tls_connection;

enum {
	/*
	 * Read with this much room: it is the content of a whole record of TLS (RFC 8446,
	 * section 5.1). So none is left in memory, where no event would report it.
	 */
	PEER_READ_BYTES = 16 << 10,
};

struct peer {
	int fd;                     /* the caller's */
	struct tls_connection *tls; /* NULL: plain bytes; else its handshake is done */
	struct stream out;
};

/* As stream_flush and stream_pass. */
bool peer_flush(struct peer *peer);
bool peer_pass(struct peer *peer, const char *data, size_t size);

/* As recv(2), with room for PEER_READ_BYTES: EAGAIN when nothing has come. */
ssize_t peer_read(struct peer *peer, char data[PEER_READ_BYTES]);

/* Go on with plain bytes, after TLS has failed. */
void peer_drop_tls(struct peer *peer);
