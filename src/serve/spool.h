/*
 * spool: the newest bytes that a job has printed. A reader asks for the bytes from a position
 * on; positions count all bytes since the job began. Nobody is held up by a reader who is too
 * slow: the oldest bytes go, and the reader can see how many it has missed.
 */
#pragma once

#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

enum { SPOOL_BYTES = 1 << 20 }; /* of one job */

/* A spool that is all zero is empty. */
struct spool {
	char *bytes; /* the byte at position P lies at P % capacity */
	size_t capacity;
	uint64_t total; /* bytes that came so far */
};

void spool_fini(struct spool *spool);

/* The capacity that SIZE more bytes want: SPOOL_BYTES at most, and never less than now. */
size_t spool_wants(const struct spool *spool, size_t size);
/* Have room for CAPACITY bytes, more than now. Does nothing once bytes have gone. */
void spool_grow(struct spool *spool, size_t capacity);
/* Add BYTES. The oldest ones go where the capacity is used up. */
void spool_add(struct spool *spool, struct str bytes);

/* The position of the oldest byte that is still there. */
uint64_t spool_first(const struct spool *spool);
/*
 * The position at which a reader that wants the bytes from FROM on can begin: FROM, or where
 * older bytes have gone, behind the end of the first line that is near.
 */
uint64_t spool_begin(const struct spool *spool, uint64_t from);
/* At most MAX bytes at position AT, which is still there; valid until bytes are added. */
struct str spool_piece(const struct spool *spool, uint64_t at, size_t max);
