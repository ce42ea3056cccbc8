/* folder: taking away a folder of our own with all that is in it; opening a closed one. */
#pragma once
#include <sys/stat.h>

/*
 * MODE with the permissions MORE, as chmod in a cell takes them: without set-id bits. The
 * filter refuses those by asking the worker, and the worker that sets them would wait for
 * its own answer.
 */
static inline mode_t folder_mode_opened(mode_t mode, mode_t more)
{
	return (mode & (S_ISVTX | S_IRWXU | S_IRWXG | S_IRWXO)) | more;
}

/*
 * Remove PATH (NULL is fine) and everything below it, as far as the kernel lets us; links
 * are removed, never followed. For when nobody works in it any more.
 */
void folder_remove(const char *path);
