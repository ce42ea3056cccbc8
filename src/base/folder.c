/* folder: a walk by descriptors; see folder.h. */
#include "base/folder.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The walk holds one descriptor open for each level. A folder that somebody nests deeper on
 * purpose is left behind.
 */
enum { DEPTH_MAX = 200 };

static int folder_open(int parent, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(parent, name, flags);

	/* Its owner may have closed it to himself. */
	if (fd < 0 && errno == EACCES && fchmodat(parent, name, S_IRWXU, 0) == 0)
		fd = openat(parent, name, flags);
	return fd;
}

static void remove_below(int parent, const char *name, int depth)
{
	int fd = folder_open(parent, name);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);

	if (folder == NULL) {
		fd_close(&fd);
		return;
	}
	for (struct dirent *entry = readdir(folder); entry != NULL;
	     entry = readdir(folder)) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, entry->d_name, 0) == 0)
			continue;
		if (errno == EACCES && fchmod(fd, S_IRWXU) == 0 &&
		    unlinkat(fd, entry->d_name, 0) == 0)
			continue;
		if (depth < DEPTH_MAX)
			remove_below(fd, entry->d_name, depth + 1);
	}
	(void)closedir(folder);
	(void)unlinkat(parent, name, AT_REMOVEDIR);
}

void folder_remove(const char *path)
{
	if (path != NULL)
		remove_below(AT_FDCWD, path, 0);
}
