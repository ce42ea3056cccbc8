/* folder: taking away a folder of our own with all that is in it; opening a closed one. */
#pragma once
#include <sys/stat.h>

/*
 * MODE with the permissions MORE and without set-id bits, fit for a chmod in a cell. The
 * filter of a cell asks the worker about a chmod with set-id bits, so that a worker that
 * sets them itself would wait for its own answer.
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
