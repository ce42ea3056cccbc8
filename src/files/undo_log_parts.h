/*
 * undo_log_parts: the layout of chunks and states in a log, for undo_state.c and
 * undo_log*.c.
 */
#pragma once
#include "files/undo_log.h"

#include <stddef.h>
#include <stdint.h>

enum {
	UNDO_CHANGE_HEADER = 2 * UNDO_STATE_BYTES,
	UNDO_READ_AT_ONCE = 256 << 10,
	UNDO_ALIGNED = 4096, /* contents are shared in whole blocks */
};

/* The tag of the padding before a content that begins at a whole block. */
#define UNDO_PAD 0x50554247

/* Write NUMBER as COUNT bytes, the lowest first. */
static inline void undo_put(char *bytes, uint64_t number, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (char)(number >> (8 * i));
}

static inline uint64_t undo_get(const char *bytes, size_t count)
{
	uint64_t number = 0;

	for (size_t i = 0; i < count; i++)
		number |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
	return number;
}
