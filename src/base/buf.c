/* buf: bytes that grow under a ceiling; see buf.h. */
#include "base/buf.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/*
 * Small sentences fit the first allocation; below it realloc would only be called more
 * often.
 */
enum { BUF_FIRST = 64 };

/* Never written to: `capacity` 0 marks it. */
static const char buf_empty[1] = "";

static char *buf_shared_empty(void)
{
	return (char *)(uintptr_t)buf_empty;
}

void buf_init(struct buf *buf, size_t max)
{
	/* The ceiling leaves room for the NUL and for doubling without overflow. */
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

/* Room for SIZE more bytes and the NUL, or false over the ceiling. */
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
	 * The first attempt may have filled old room before the ceiling refused the rest.
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
	/* The NUL moves along. */
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

char *buf_take(struct buf *buf)
{
	char *taken = buf->capacity ? buf->data : memory_copy("");

	buf_init(buf, buf->max);
	return taken;
}
