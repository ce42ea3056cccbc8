/* children: from the kernel's list, again and again until it is empty; see children.h. */
#include "process/children.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN_TEXT = 1 << 20 };

struct list {
	pid_t *pids;
	size_t count;
	struct buf text;
};

static void list_read(struct list *list, int fd, const char *name)
{
	char *at;

	buf_clear(&list->text);
	if (!fd_read_all(fd, &list->text, name, NULL))
		return;
	at = list->text.data;
	for (long pid; (pid = strtol(at, &at, 10)) > 0;) {
		list->pids = memory_grow(list->pids, list->count + 2, sizeof(*list->pids));
		list->pids[list->count++] = (pid_t)pid;
		list->pids[list->count] = 0;
	}
}

static void list_threads(struct list *list)
{
	DIR *dir = opendir("/proc/self/task");

	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir));) {
		char name[sizeof("/proc/self/task//children") + NAME_MAX];
		auto_close int fd = -1;

		(void)snprintf(name, sizeof(name), "/proc/self/task/%s/children",
			       entry->d_name);
		fd = open(name, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			list_read(list, fd, name);
	}
	(void)closedir(dir);
}

pid_t *children_list(int fd)
{
	struct list list = {.pids = memory_alloc(sizeof(pid_t))};

	buf_init(&list.text, CHILDREN_TEXT);
	if (fd <= 0)
		list_threads(&list);
	else if (lseek(fd, 0, SEEK_SET) == 0)
		list_read(&list, fd, "children");
	buf_fini(&list.text);
	return list.pids;
}

static bool is_among(pid_t pid, const pid_t *pids)
{
	for (; pids && *pids; pids++) {
		if (*pids == pid)
			return true;
	}
	return false;
}

unsigned children_end(int fd, const pid_t *others, pid_t group)
{
	unsigned alive = 0;
	bool found = true;

	while (found) {
		auto_free pid_t *pids = children_list(fd);

		found = false;
		/* All before any is waited for: who goes on forking must not win the time. */
		for (pid_t *at = pids; *at; at++) {
			if (!is_among(*at, others) && waitpid(*at, NULL, WNOHANG) == 0)
				(void)kill(*at, SIGKILL);
		}
		for (pid_t *at = pids; *at; at++) {
			if (is_among(*at, others))
				continue;
			found = true;
			/* -1: an orphan that had ended by itself. */
			if (waitpid(*at, NULL, 0) == *at)
				alive++;
		}
		/* The kernel's list is not exact while processes come and go. */
		if (group > 0)
			(void)kill(-group, SIGKILL);
	}
	return alive;
}
