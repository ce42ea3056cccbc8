/* memory: allocation that ends the process instead of failing, and arenas. */
#include "base/memory.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * Size of an arena's block: one malloc serves many small objects, and the block with
 * malloc's own data fits into pages.
 */
enum { ARENA_BLOCK = 8192 - 64 };

struct arena_block {
	struct arena_block *next;
	size_t size, used;
	alignas(max_align_t) char data[];
};

_Noreturn void memory_exhausted(size_t size)
{
	/* Do not allocate here. */
	char message[96];
	int length = snprintf(message, sizeof(message),
			      "glovebox: out of memory (%zu bytes wanted)\n", size);

	if (length > 0 && write(STDERR_FILENO, message, (size_t)length) < 0)
		abort();
	abort();
}

void *memory_alloc(size_t size)
{
	return memory_array(1, size);
}

void *memory_array(size_t count, size_t size)
{
	size_t total;
	void *memory;

	if (__builtin_mul_overflow(count, size, &total))
		memory_exhausted(SIZE_MAX);
	/* calloc(0) may return NULL, which would look like a failure. */
	memory = calloc(1, total ? total : 1);
	if (!memory)
		memory_exhausted(total);
	return memory;
}

void *memory_grow(void *old, size_t count, size_t size)
{
	size_t total;
	void *memory;

	if (__builtin_mul_overflow(count, size, &total))
		memory_exhausted(SIZE_MAX);
	memory = realloc(old, total ? total : 1);
	if (!memory)
		memory_exhausted(total);
	return memory;
}

void *memory_more(void *old, size_t count, size_t size)
{
	if ((count & (count - 1)) != 0)
		return old;
	return memory_grow(old, count > 0 ? 2 * count : 1, size);
}

char *memory_copy(const char *text)
{
	return text ? memory_copy_str(str_of(text)) : NULL;
}

char *memory_copy_str(struct str text)
{
	char *copy = memory_grow(NULL, text.size + 1, 1);

	if (text.size)
		memcpy(copy, text.data, text.size);
	copy[text.size] = '\0';
	return copy;
}

void arena_fini(struct arena *arena)
{
	struct arena_block *next;

	if (!arena)
		return;
	for (struct arena_block *block = arena->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	arena_init(arena);
}

static struct arena_block *arena_new_block(size_t size)
{
	struct arena_block *block;

	if (__builtin_add_overflow(size, sizeof(*block), &size))
		memory_exhausted(SIZE_MAX);
	block = memory_alloc(size);
	block->size = size - sizeof(*block);
	return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	const size_t align = alignof(max_align_t);
	struct arena_block *block = arena->blocks;
	void *memory;

	if (size > SIZE_MAX - align)
		memory_exhausted(size);
	/* Give two empty objects different addresses. */
	size = size ? (size + align - 1) / align * align : align;
	if (!block || block->size - block->used < size) {
		block = arena_new_block(size > ARENA_BLOCK ? size : ARENA_BLOCK);
		if (arena->blocks && size > ARENA_BLOCK / 4) {
			/* Do not waste the rest of the open block for a large object. */
			block->next = arena->blocks->next;
			arena->blocks->next = block;
		} else {
			block->next = arena->blocks;
			arena->blocks = block;
		}
	}
	memory = block->data + block->used;
	block->used += size;
	arena->used += size;
	return memory;
}

bool arena_next(const struct arena *arena, const struct arena_block **at, struct str *bytes)
{
	const struct arena_block *block = *at != NULL ? (*at)->next : arena->blocks;

	if (block == NULL)
		return false;
	*at = block;
	*bytes = (struct str){block->data, block->used};
	return true;
}

char *arena_copy(struct arena *arena, struct str text)
{
	char *copy = arena_alloc(arena, text.size + 1);

	if (text.size)
		memcpy(copy, text.data, text.size);
	return copy;
}
