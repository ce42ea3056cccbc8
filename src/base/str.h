/*
 * str: a view of bytes somebody else owns. Never owns, never outlives its
 * source, need not end in NUL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	const char *data;
	size_t size;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})

/* The view of a C string; NULL gives the empty view. */
struct str str_of(const char *text);
bool str_equal(struct str a, struct str b);
bool str_is(struct str a, const char *text);
bool str_starts(struct str text, struct str prefix);
bool str_ends(struct str text, struct str suffix);

/* TEXT from FROM on, at most SIZE bytes; both are clamped to what is there. */
struct str str_part(struct str text, size_t from, size_t size);

/* Offset of the first NEEDLE at or after FROM, or (size_t)-1. */
size_t str_find(struct str text, struct str needle, size_t from);

/* Without blanks, tabs and line ends on both sides. */
struct str str_trim(struct str text);

/*
 * Take the next line off the front of *REST (without its "\n"; a "\r" stays).
 * False when nothing is left. A last line without "\n" counts as a line.
 */
bool str_next_line(struct str *rest, struct str *line);

/* Take the next of the blank-separated words off *REST. False when none is left. */
bool str_next_word(struct str *rest, struct str *word);
/* Is WORD one of the blank-separated WORDS (NULL: none)? */
bool str_among(const char *words, struct str word);

/*
 * Compares sixteen bytes at the same time. The vectors are an extension of GCC and
 * clang, which makes a loop of them for a processor without such instructions.
 */

/* 16 bytes are what every x86-64 and arm64 compares at once. */
typedef uint8_t byte_vector __attribute__((vector_size(16)));

enum {
	BYTE_VECTOR = sizeof(byte_vector),
	/* A lane of eight bits counts so far. */
	BYTE_VECTOR_COUNT_MAX = 255,
};

static inline byte_vector byte_vector_of(char c)
{
	return (byte_vector){0} + (uint8_t)c;
}

static inline byte_vector byte_vector_load(const char *from)
{
	byte_vector bytes;

	memcpy(&bytes, from, sizeof(bytes));
	return bytes;
}

/* All bits (-1) in the lanes where the bytes at FROM equal those of VECTOR. */
static inline byte_vector byte_vector_equal(const char *from, byte_vector vector)
{
	return (byte_vector)(byte_vector_load(from) == vector);
}

/* The first lane of LANES that has a bit; BYTE_VECTOR: none has. Lanes are all bits or none. */
static inline size_t byte_vector_first(byte_vector lanes)
{
	uint64_t halves[2];

	memcpy(halves, &lanes, sizeof(halves));
	if ((halves[0] | halves[1]) == 0)
		return BYTE_VECTOR;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return halves[0] != 0 ? (size_t)__builtin_ctzll(halves[0]) / 8
			      : 8 + (size_t)__builtin_ctzll(halves[1]) / 8;
#else
	return halves[0] != 0 ? (size_t)__builtin_clzll(halves[0]) / 8
			      : 8 + (size_t)__builtin_clzll(halves[1]) / 8;
#endif
}

static inline size_t byte_vector_sum(byte_vector lanes)
{
	size_t sum = 0;

	for (size_t i = 0; i < BYTE_VECTOR; i++)
		sum += lanes[i];
	return sum;
}
