/* temp_tree: makes files and folders. */
#include "front/verbs/temp_tree.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARENT_MAX = 256 };

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
