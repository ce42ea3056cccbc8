/*
 * nomalloc: preloaded into the program, lets one allocation of one of its processes fail.
 * NOMALLOC=NAME:N: the Nth allocation of the process that the kernel knows as NAME.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

enum { NAME_SIZE = 16 };

static struct {
	char name[NAME_SIZE];
	long nth;
} wanted;

__attribute__((constructor)) static void wanted_read(void)
{
	const char *text = getenv("NOMALLOC");
	const char *colon = text != NULL ? strrchr(text, ':') : NULL;

	if (colon == NULL || colon - text >= NAME_SIZE)
		return;
	memcpy(wanted.name, text, (size_t)(colon - text));
	wanted.nth = strtol(colon + 1, NULL, 10);
}

/* Counted in each process by itself: a copy of the memory goes on with its own count. */
static bool fails(void)
{
	char name[NAME_SIZE] = "";

	if (wanted.nth <= 0 || prctl(PR_GET_NAME, name) < 0 ||
	    strcmp(name, wanted.name) != 0 || --wanted.nth > 0)
		return false;
	errno = ENOMEM;
	return true;
}

__attribute__((visibility("default"))) void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size)
{
	return fails() ? NULL : __libc_calloc(count, size);
}

__attribute__((visibility("default"))) void *realloc(void *old, size_t size)
{
	return fails() ? NULL : __libc_realloc(old, size);
}
