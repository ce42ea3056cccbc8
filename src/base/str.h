/*
 * str: a view of bytes that somebody else owns. A view must not outlive its source and
 * need not end in NUL.
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
/* The same without a look at the case of ASCII letters: "Content-Length" is "content-length". */
bool str_is_caseless(struct str a, const char *text);
bool str_starts_caseless(struct str text, const char *prefix);

/*
 * The part of TEXT from FROM on, at most SIZE bytes. Both are limited to the bytes that
 * exist.
 */
struct str str_part(struct str text, size_t from, size_t size);

/* Offset of the first NEEDLE at or after FROM, or (size_t)-1. */
size_t str_find(struct str text, struct str needle, size_t from);

/* TEXT without blanks, tabs and line ends on both sides. */
struct str str_trim(struct str text);

/*
 * Take the next line from *REST, without its "\n" (a "\r" stays). False when nothing is
 * left. A last line without "\n" counts as a line.
 */
bool str_next_line(struct str *rest, struct str *line);

/*
 * Take the next word from *REST, whose words are separated by blanks. False when none
 * is left.
 */
bool str_next_word(struct str *rest, struct str *word);
/* Is WORD one of WORDS, which are separated by blanks (NULL: none)? */
bool str_among(const char *words, struct str word);

/* Sort the array TEXTS of COUNT pointers to C strings by their bytes. */
void str_sort(void *texts, size_t count);

/*
 * Compares sixteen bytes at the same time. Vectors are an extension of GCC and clang,
 * which use a loop on processors without such instructions.
 */

/* Every x86-64 and arm64 compares 16 bytes in one instruction. */
typedef uint8_t byte_vector __attribute__((vector_size(16)));

enum {
	BYTE_VECTOR = sizeof(byte_vector),
	/* A lane of eight bits can count up to this. */
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

/* All bits (-1) are set in the lanes where the bytes at FROM equal those of VECTOR. */
static inline byte_vector byte_vector_equal(const char *from, byte_vector vector)
{
	return (byte_vector)(byte_vector_load(from) == vector);
}

/*
 * The first lane of LANES that is set; BYTE_VECTOR when none is. A lane has all bits or
 * none.
 */
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
