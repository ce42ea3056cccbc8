/*
 * memory: allocation that never fails (out of memory ends the process with a message),
 * arenas for objects that are freed together, and cleanup by scope.
 */
#pragma once
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

void *memory_alloc(size_t size);               /* zeroed */
void *memory_array(size_t count, size_t size); /* zeroed; overflow ends the process */
/* realloc; new part not zeroed */
void *memory_grow(void *old, size_t count, size_t size);
/*
 * Room for one more item behind the COUNT items of OLD, an array that has grown by this
 * function alone. Its room is the power of two that COUNT needs, so that nobody stores it.
 */
void *memory_more(void *old, size_t count, size_t size);
char *memory_copy(const char *text); /* NULL stays NULL */
char *memory_copy_str(struct str text);
_Noreturn void memory_exhausted(size_t size);

/* All memory of one session, turn or request; freed in one call. */
struct arena_block;
struct arena {
	struct arena_block *blocks;
	size_t used; /* bytes handed out, for ceilings */
};

static inline void arena_init(struct arena *arena)
{
	*arena = (struct arena){0};
}
void arena_fini(struct arena *arena);
void *arena_alloc(struct arena *arena, size_t size); /* zeroed, aligned for anything */
char *arena_copy(struct arena *arena, struct str text);
/*
 * The bytes of the next block of ARENA, for a search in all that it holds. *AT: NULL
 * before the first. False: there are no more.
 */
bool arena_next(const struct arena *arena, const struct arena_block **at, struct str *bytes);

/* `auto_free char *p = …;` frees at the end of the scope. */
static inline void memory_auto_free(void *pointer)
{
	free(*(void **)pointer);
}
#define auto_free __attribute__((cleanup(memory_auto_free)))
