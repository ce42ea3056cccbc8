/* spool: a ring of bytes. */

#include "serve/spool.h"

#include "base/memory.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

enum {
	SPOOL_LEAST = 4 << 10, /* the first capacity; most jobs print little */
	LINE_NEAR = 4 << 10,   /* how far a reader is moved to the beginning of a line */
};

void spool_fini(struct spool *spool)
{
	free(spool->bytes);
	*spool = (struct spool){0};
}

size_t spool_wants(const struct spool *spool, size_t size)
{
	const uint64_t wanted = spool->total + size;
	size_t capacity = spool->capacity > 0 ? spool->capacity : SPOOL_LEAST;

	while (capacity < wanted && capacity < SPOOL_BYTES)
		capacity *= 2;
	return capacity;
}

void spool_grow(struct spool *spool, size_t capacity)
{
	if (capacity <= spool->capacity || spool->total > spool->capacity)
		return;
	spool->bytes = memory_grow(spool->bytes, capacity, 1);
	spool->capacity = capacity;
}

void spool_add(struct spool *spool, struct str bytes)
{
	if (spool->capacity == 0) {
		spool->total += bytes.size;
		return;
	}
	if (bytes.size > spool->capacity) {
		spool->total += bytes.size - spool->capacity;
		bytes = str_part(bytes, bytes.size - spool->capacity, spool->capacity);
	}
	while (bytes.size > 0) {
		const size_t at = (size_t)(spool->total % spool->capacity);
		const size_t room = spool->capacity - at;
		const size_t size = bytes.size < room ? bytes.size : room;

		memcpy(spool->bytes + at, bytes.data, size);
		spool->total += size;
		bytes = str_part(bytes, size, bytes.size);
	}
}

uint64_t spool_first(const struct spool *spool)
{
	return spool->total > spool->capacity ? spool->total - spool->capacity : 0;
}

uint64_t spool_begin(const struct spool *spool, uint64_t from)
{
	const uint64_t first = spool_first(spool);
	uint64_t at = from > first ? from : first;

	if (at == from)
		return at < spool->total ? at : spool->total;
	for (; at < spool->total && at - first < LINE_NEAR; at++) {
		if (spool->bytes[at % spool->capacity] == '\n')
			return at + 1;
	}
	return first;
}

struct str spool_piece(const struct spool *spool, uint64_t at, size_t max)
{
	size_t start, size;

	if (spool->capacity == 0 || at >= spool->total || at < spool_first(spool))
		return (struct str){"", 0};
	start = (size_t)(at % spool->capacity);
	size = spool->capacity - start;
	if (size > spool->total - at)
		size = (size_t)(spool->total - at);
	return (struct str){spool->bytes + start, size < max ? size : max};
}
