/* repository: walks up the folders. */
#include "front/verbs/repository.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool repository_above(const char *workspace, struct buf *above)
{
	char path[PATH_MAX];
	size_t size = strlen(workspace);
	struct stat st;

	for (;;) {
		int n = snprintf(path, sizeof(path), "%.*s/.git", (int)size, workspace);

		if (n < 0 || n >= (int)sizeof(path))
			return false;
		if (lstat(path, &st) == 0)
			break;
		while (size > 0 && workspace[size - 1] != '/')
			size--;
		if (size == 0)
			return false;
		size--;
	}
	return size < strlen(workspace) && buf_add(above, workspace, size);
}
