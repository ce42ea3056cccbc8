/* program_end: kill, reap, and look who is only being cleaned up; see program_end.h. */
#include "process/program_end.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	STEP_MS = 1,        /* between two looks at what is left */
	STAT_MAX = 4096,    /* a line of numbers and a name of 16 bytes */
	FLAG_EXITING = 0x4, /* PF_EXITING, include/linux/sched.h since 2.4 */
	FIELD_STATE = 1,    /* of /proc/PID/stat, from the end of the name on */
	FIELD_FLAGS = 7,
};

/* Is the thread whose stat file is at PATH below FOLDER_FD dead or dying? */
static bool is_exiting(int folder_fd, const char *path)
{
	auto_close int fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC);
	struct buf text;
	struct str rest, word;
	bool exiting = false;
	const char *at;

	if (fd < 0)
		return true; /* gone */
	buf_init(&text, STAT_MAX);
	if (!fd_read_all(fd, &text, path, NULL)) {
		exiting = errno == ESRCH;
	} else if ((at = strrchr(text.data, ')')) != NULL) {
		rest = str_of(at);
		for (int i = 0; str_next_word(&rest, &word); i++) {
			if (i == FIELD_STATE && (*word.data == 'Z' || *word.data == 'X'))
				exiting = true;
			else if (i == FIELD_FLAGS &&
				 (strtoul(word.data, NULL, 10) & FLAG_EXITING) != 0)
				exiting = true;
		}
	}
	buf_fini(&text);
	return exiting;
}

/* Every thread: the first one may be dead long before the others. */
static bool are_threads_exiting(const char *pid)
{
	char path[NAME_MAX + sizeof("/proc//task")];
	bool all = true;
	DIR *folder;

	(void)snprintf(path, sizeof(path), "/proc/%s/task", pid);
	folder = opendir(path);
	if (!folder)
		return errno == ENOENT || errno == ESRCH;
	for (struct dirent *entry; all && (entry = readdir(folder));) {
		char name[NAME_MAX + sizeof("/stat")];

		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(name, sizeof(name), "%s/stat", entry->d_name);
		all = is_exiting(dirfd(folder), name);
	}
	(void)closedir(folder);
	return all;
}

static bool are_all_exiting(void)
{
	DIR *folder = opendir("/proc");
	bool all = folder != NULL;

	for (struct dirent *entry; all && (entry = readdir(folder));) {
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    strtol(entry->d_name, NULL, 10) != getpid())
			all = are_threads_exiting(entry->d_name);
	}
	if (folder)
		(void)closedir(folder);
	return all;
}

void program_end_all(int64_t patience_ms,
		     void (*reaped)(void *context, pid_t pid, int status), void *context)
{
	int flags = patience_ms == CLOCK_NEVER ? __WALL : __WALL | WNOHANG;
	int64_t until =
		patience_ms == CLOCK_NEVER ? CLOCK_NEVER : clock_now_ms() + patience_ms;

	(void)kill(-1, SIGKILL);
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, flags);

		if (pid > 0 && reaped)
			reaped(context, pid, status);
		if (pid > 0 || (pid < 0 && errno == EINTR))
			continue;
		if (pid < 0 || (clock_now_ms() >= until && are_all_exiting()))
			return;
		(void)poll(NULL, 0, STEP_MS);
	}
}
