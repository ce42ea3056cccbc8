/* temp_tree: files and folders, one call each. */
#include "front/temp_tree.h"

#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Deeper than what we make there, and what a build or an attack makes in it. */
enum { DEPTH_MAX = 16, PARENT_MAX = 256 };

bool temp_tree_write(int folder_fd, const char *name, struct str data, mode_t mode,
		     struct err *err)
{
	auto_close int fd = -1;
	char parent[PARENT_MAX];

	for (const char *slash = strchr(name, '/'); slash != NULL;
	     slash = strchr(slash + 1, '/')) {
		(void)snprintf(parent, sizeof(parent), "%.*s", (int)(slash - name), name);
		if (mkdirat(folder_fd, parent, 0755) < 0 && errno != EEXIST)
			return err_set(err, errno, "%s: %s", parent, strerror(errno));
	}
	fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", name, strerror(errno));
	return fd_write_all(fd, data.data, data.size, err);
}

static void remove_below(int parent_fd, const char *name, int depth)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (folder == NULL) {
		fd_close(&fd);
		return;
	}
	while ((entry = readdir(folder)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, entry->d_name, 0) < 0 && depth < DEPTH_MAX)
			remove_below(fd, entry->d_name, depth + 1);
	}
	(void)closedir(folder);
	(void)unlinkat(parent_fd, name, AT_REMOVEDIR);
}

void temp_tree_remove(const char *path)
{
	remove_below(AT_FDCWD, path, 0);
}
