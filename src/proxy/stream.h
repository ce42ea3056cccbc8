/*
 * stream: bytes on their way to a socket, in one direction of a connection. Bytes that the
 * socket does not accept immediately are kept, and the caller reads no further ones in the
 * meantime: memory use stays flat, and a slow reader slows the writer down.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The most that waits for a slow reader: what comes of one read, when it grows on the way
 * by its framing and by what was held back; or an answer that the broker has read whole.
 */
enum { STREAM_MAX = 2 << 20 };

struct stream {
	struct buf pending; /* read, not yet taken by the other side */
	bool ended;         /* nothing more is read */
	bool passed;        /* and the end was passed on to the other side */
};

void stream_init(struct stream *stream);
/* Send to FD what waits, then the end when there is one. False when FD is broken. */
bool stream_flush(struct stream *stream, int fd);
/* Send SIZE bytes to FD. Bytes that FD does not accept now wait in STREAM. */
bool stream_pass(struct stream *stream, int fd, const char *data, size_t size);
