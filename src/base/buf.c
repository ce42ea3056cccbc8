/* buf: byte buffers that grow up to a ceiling, and Base64 (RFC 4648). */

#include "base/buf.h"

#include "base/memory.h"
#include "base/str.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/*
 * The first allocation is enough for small sentences. With less, realloc would only be
 * called more often.
 */
enum { BUF_FIRST = 64 };

/* The shared empty content, marked by `capacity` 0. It is never written to. */
static const char buf_empty[1] = "";

static char *buf_shared_empty(void)
{
	return (char *)(uintptr_t)buf_empty;
}

void buf_init(struct buf *buf, size_t max)
{
	/*
	 * Limit the ceiling, to leave room for the NUL and for doubling without
	 * overflow.
	 */
	if (max > SIZE_MAX / 4)
		max = SIZE_MAX / 4;
	*buf = (struct buf){.data = buf_shared_empty(), .max = max};
}

void buf_fini(struct buf *buf)
{
	if (!buf)
		return;
	if (buf->capacity)
		free(buf->data);
	buf_init(buf, buf->max);
}

void buf_clear(struct buf *buf)
{
	buf->overflowed = false;
	buf_truncate(buf, 0);
}

/* Make room for SIZE more bytes and the NUL. False when over the ceiling. */
static bool buf_grow(struct buf *buf, size_t size)
{
	size_t wanted, capacity;

	if (size > buf->max - buf->size) {
		buf->overflowed = true;
		return false;
	}
	wanted = buf->size + size + 1;
	if (wanted <= buf->capacity)
		return true;
	capacity = buf->capacity ? buf->capacity * 2 : BUF_FIRST;
	if (capacity < wanted)
		capacity = wanted;
	if (capacity > buf->max + 1)
		capacity = buf->max + 1;
	buf->data = memory_grow(buf->capacity ? buf->data : NULL, capacity, 1);
	buf->capacity = capacity;
	buf->data[buf->size] = '\0';
	return true;
}

bool buf_add(struct buf *buf, const void *data, size_t size)
{
	if (!buf_grow(buf, size))
		return false;
	if (size)
		memcpy(buf->data + buf->size, data, size);
	buf->size += size;
	buf->data[buf->size] = '\0';
	return true;
}

bool buf_adds(struct buf *buf, const char *text)
{
	return buf_add(buf, text, strlen(text));
}

bool buf_addstr(struct buf *buf, struct str text)
{
	return buf_add(buf, text.data, text.size);
}

bool buf_addc(struct buf *buf, char c)
{
	return buf_add(buf, &c, 1);
}

bool buf_addf(struct buf *buf, const char *format, ...)
{
	va_list arguments;
	bool added;

	va_start(arguments, format);
	added = buf_addv(buf, format, arguments);
	va_end(arguments);
	return added;
}

bool buf_addv(struct buf *buf, const char *format, va_list arguments)
{
	size_t room = buf->capacity ? buf->capacity - buf->size : 0;
	va_list again;
	int size;

	va_copy(again, arguments);
	size = vsnprintf(room ? buf->data + buf->size : NULL, room, format, arguments);
	if (size >= 0 && (size_t)size >= room && buf_grow(buf, (size_t)size)) {
		room = buf->capacity - buf->size;
		size = vsnprintf(buf->data + buf->size, room, format, again);
	}
	va_end(again);
	/*
	 * The first attempt may have filled the room before the ceiling refused the
	 * rest.
	 */
	if (size < 0 || (size_t)size > buf->max - buf->size) {
		if (buf->capacity)
			buf->data[buf->size] = '\0';
		buf->overflowed = true;
		return false;
	}
	buf->size += (size_t)size;
	return true;
}

bool buf_end_line(struct buf *buf)
{
	return buf->size == 0 || buf->data[buf->size - 1] == '\n' || buf_addc(buf, '\n');
}

char *buf_reserve(struct buf *buf, size_t size)
{
	return buf_grow(buf, size) ? buf->data + buf->size : NULL;
}

void buf_commit(struct buf *buf, size_t size)
{
	assert(size == 0 || size < buf->capacity - buf->size);
	buf->size += size;
	if (buf->capacity)
		buf->data[buf->size] = '\0';
}

void buf_remove(struct buf *buf, size_t from, size_t size)
{
	assert(from <= buf->size && size <= buf->size - from);
	if (size == 0)
		return;
	/* Move the NUL along. */
	memmove(buf->data + from, buf->data + from + size, buf->size - from - size + 1);
	buf->size -= size;
}

void buf_truncate(struct buf *buf, size_t size)
{
	assert(size <= buf->size);
	buf->size = size;
	if (buf->capacity)
		buf->data[size] = '\0';
}

struct str buf_str(const struct buf *buf)
{
	return (struct str){buf->data, buf->size};
}

void buf_swap(struct buf *a, struct buf *b)
{
	const struct buf held = *a;
	const size_t max = b->max;

	assert(a->size <= max && b->size <= held.max);
	*a = *b;
	a->max = held.max;
	*b = held;
	b->max = max;
}

bool buf_take_line(struct buf *line, struct str *bytes)
{
	const size_t end = str_find(*bytes, STR("\n"), 0);
	const bool whole = end != (size_t)-1;
	const struct str part = str_part(*bytes, 0, whole ? end : bytes->size);

	if (!line->overflowed)
		(void)buf_addstr(line, part);
	*bytes = str_part(*bytes, part.size + whole, bytes->size);
	return whole;
}

char *buf_take(struct buf *buf)
{
	char *taken = buf->capacity ? buf->data : memory_copy("");

	buf_init(buf, buf->max);
	return taken;
}

static const char digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

enum { BITS = 6, MASK = 63, GROUP = 3, LETTERS = 4 };

bool buf_base64_add(struct str bytes, struct buf *out)
{
	const size_t size = (bytes.size + GROUP - 1) / GROUP * LETTERS;
	char *at = buf_reserve(out, size);

	if (at == NULL)
		return false;
	for (size_t i = 0; i < bytes.size; i += GROUP, at += LETTERS) {
		uint32_t bits = 0;
		const size_t here = bytes.size - i < GROUP ? bytes.size - i : GROUP;

		for (size_t j = 0; j < GROUP; j++)
			bits = bits << 8 |
			       (j < here ? (unsigned char)bytes.data[i + j] : 0);
		for (size_t j = 0; j < LETTERS; j++)
			at[j] = j <= here
					? digits[bits >> (BITS * (LETTERS - 1 - j)) & MASK]
					: '=';
	}
	buf_commit(out, size);
	return true;
}

/* One more than the value of a Base64 digit; 0: it is none. A large file has millions of them. */
static const unsigned char values[UCHAR_MAX + 1] = {
	['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,
	['G'] = 7,  ['H'] = 8,  ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12,
	['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16, ['Q'] = 17, ['R'] = 18,
	['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
	['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30,
	['e'] = 31, ['f'] = 32, ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36,
	['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, ['p'] = 42,
	['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
	['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54,
	['2'] = 55, ['3'] = 56, ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60,
	['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};

/* The value of a Base64 digit; -1 when C is none. */
static int digit_value(char c)
{
	return values[(unsigned char)c] - 1;
}

/* The bytes of one group of letters as one number. PAD of the letters are "=". */
static bool group_bits(const char *letters, size_t pad, uint32_t *result)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < LETTERS; i++) {
		const int value = i < LETTERS - pad ? digit_value(letters[i]) : 0;

		if (value < 0)
			return false;
		bits = bits << BITS | (uint32_t)value;
	}
	/*
	 * Unused bits at the end must be zero, so that each content has exactly one
	 * text.
	 */
	*result = bits;
	return (bits & ((1u << (8 * pad)) - 1)) == 0;
}

/* The number of "=" at the end of TEXT. */
static size_t padding(struct str text)
{
	size_t pad = 0;

	while (pad < 2 && pad < text.size && text.data[text.size - 1 - pad] == '=')
		pad++;
	return pad;
}

/* Write the bytes of TEXT, whose groups are whole, to AT. NULL: only check TEXT. */
static bool read_groups(struct str text, char *at)
{
	const size_t pad = padding(text);
	uint32_t bits;

	for (size_t i = 0; i < text.size; i += LETTERS) {
		const size_t padded = i + LETTERS == text.size ? pad : 0;

		if (!group_bits(text.data + i, padded, &bits))
			return false;
		for (size_t j = 0; at != NULL && j < GROUP - padded; j++)
			*at++ = (char)(bits >> (8 * (GROUP - 1 - j)) & 0xff);
	}
	return true;
}

bool buf_base64_read(struct str text, struct buf *out)
{
	const size_t size = text.size / LETTERS * GROUP - padding(text);
	char *at;
	bool read;

	if (text.size % LETTERS != 0)
		return false;
	at = buf_reserve(out, size);
	if (at == NULL)
		return false;
	read = read_groups(text, at);
	buf_commit(out, read ? size : 0);
	return read;
}

bool buf_base64_is_valid(struct str text)
{
	return text.size % LETTERS == 0 && read_groups(text, NULL);
}
