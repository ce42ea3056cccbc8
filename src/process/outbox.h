/*
 * outbox: lines for a reader that may be slow. They wait in a buffer with a ceiling, and a
 * loop writes them as the reader takes them; the caller never blocks.
 */
#pragma once

#include "base/buf.h"
#include "process/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct outbox {
	struct loop *loop;
	struct watch writing;
	int fd;    /* our own descriptor, which never blocks; or the caller's */
	int given; /* the caller's */
	bool is_socket;
	struct buf waiting;
	size_t from;      /* the bytes before are written */
	uint64_t written; /* all bytes that went out */
	/* errno of the write that failed, or ENOBUFS; nothing is taken after it. Or 0 */
	int gone;
};

/* Write to FD, which stays the caller's. At most MAX bytes wait. */
void outbox_open(struct outbox *outbox, struct loop *loop, int fd, size_t max);
/* Bytes that still wait are lost. An outbox that is all zero was never opened: that is fine. */
void outbox_close(struct outbox *outbox);

/*
 * Take LINE, without its end, and leave LINE with other memory. It is written by outbox_write,
 * or when the reader takes bytes again.
 */
void outbox_take_line(struct outbox *outbox, struct buf *line);

/* Write the waiting bytes, as far as that does not block. */
void outbox_write(struct outbox *outbox);
size_t outbox_size(const struct outbox *outbox); /* bytes that wait */
