/* cgroup: one group, from its making to its end, and what it refused; see cgroup.h. */
#include "sandbox/cgroup.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	TEXT_MAX = 4096, /* of the small files here; a longer list of processes is not empty */
	START_FIELD = 20, /* of /proc/PID/stat, behind the name: when it began */
};

#define PREFIX "glovebox-"

/* When PID began, in ticks since the machine did: with the pid a name for all time. */
static uint64_t start_of(pid_t pid)
{
	char path[64];
	struct buf text;
	uint64_t start = 0;
	const char *at;
	struct str rest, word;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	buf_init(&text, TEXT_MAX);
	if (fd_read_at(AT_FDCWD, path, &text) && (at = strrchr(text.data, ')')) != NULL) {
		rest = str_of(at);
		for (int i = 0; str_next_word(&rest, &word); i++) {
			if (i == START_FIELD)
				start = strtoull(word.data, NULL, 10);
		}
	}
	buf_fini(&text);
	return start;
}

static void group_close(struct cgroup *group)
{
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		fd_close(&group->folders[i]);
}

static bool limit(const struct cgroup *group, int version, const struct cgroup_limits *limits)
{
	char memory[32], pids[32];
	int fd = group->folders[CGROUP_MEMORY];

	(void)snprintf(memory, sizeof(memory), "%" PRIu64, limits->memory);
	(void)snprintf(pids, sizeof(pids), "%" PRIu64, limits->pids);
	if (fd >= 0 &&
	    !fd_write_at(fd, version == 2 ? "memory.max" : "memory.limit_in_bytes", memory))
		return false;
	/* Not everywhere: kernels count swap only when told to. */
	if (fd >= 0 && version == 2)
		(void)fd_write_at(fd, "memory.swap.max", "0");
	else if (fd >= 0)
		(void)fd_write_at(fd, "memory.memsw.limit_in_bytes", memory);
	fd = group->folders[CGROUP_PIDS];
	return fd < 0 || fd_write_at(fd, "pids.max", pids);
}

bool cgroup_make(const struct cgroup_place *place, unsigned number,
		 const struct cgroup_limits *limits, struct cgroup *group, struct err *err)
{
	struct cgroup made = {.folders = {-1, -1}};
	int code;

	(void)snprintf(made.name, sizeof(made.name), PREFIX "%d-%" PRIu64 "-%u",
		       (int)getpid(), start_of(getpid()), number);
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		if (place->folders[i] < 0)
			continue;
		if (mkdirat(place->folders[i], made.name, 0755) < 0 &&
		    !(errno == EEXIST && place->version == 2 && i > 0))
			goto failed;
		made.folders[i] = openat(place->folders[i], made.name,
					 O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (made.folders[i] < 0)
			goto failed;
	}
	if (limit(&made, place->version, limits)) {
		*group = made;
		return true;
	}
failed:
	code = errno;
	(void)cgroup_remove(place, &made);
	return err_set(err, code, "a control group: %s", strerror(code));
}

bool cgroup_enter(const struct cgroup *group, pid_t pid, struct err *err)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		if (group->folders[i] >= 0 &&
		    !fd_write_at(group->folders[i], "cgroup.procs", text))
			return err_set(err, errno,
				       "moving a worker into its control group: %s",
				       strerror(errno));
	}
	return true;
}

bool cgroup_is_empty(const struct cgroup *group)
{
	bool empty = true;
	struct buf text;

	buf_init(&text, TEXT_MAX);
	for (int i = 0; i < CGROUP_CONTROLLERS && empty; i++)
		empty = group->folders[i] < 0 ||
			(fd_read_at(group->folders[i], "cgroup.procs", &text) &&
			 text.size == 0);
	buf_fini(&text);
	return empty;
}

static bool remove_name(const struct cgroup_place *place, const char *name)
{
	bool gone = true;

	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		if (place->folders[i] >= 0 &&
		    unlinkat(place->folders[i], name, AT_REMOVEDIR) < 0 && errno != ENOENT)
			gone = false;
	}
	return gone;
}

bool cgroup_remove(const struct cgroup_place *place, struct cgroup *group)
{
	group_close(group);
	return remove_name(place, group->name);
}

/* Is NAME a group of ours whose maker is gone? */
static bool is_stale(const char *name)
{
	size_t size = strlen(PREFIX);
	char *end;
	long pid;
	uint64_t start;

	if (strncmp(name, PREFIX, size) != 0)
		return false;
	pid = strtol(name + size, &end, 10);
	if (pid <= 0 || pid > INT_MAX || *end != '-')
		return false;
	start = strtoull(end + 1, &end, 10);
	return *end == '-' && start_of((pid_t)pid) != start;
}

void cgroup_sweep(const struct cgroup_place *place)
{
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		int fd = place->folders[i] < 0
				 ? -1
				 : openat(place->folders[i], ".",
					  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *folder = fd < 0 ? NULL : fdopendir(fd);

		if (!folder) {
			fd_close(&fd);
			continue;
		}
		for (struct dirent *entry; (entry = readdir(folder));) {
			if (is_stale(entry->d_name))
				(void)remove_name(place, entry->d_name);
		}
		(void)closedir(folder);
	}
}

int cgroup_open_count(const struct cgroup *group, enum cgroup_controller controller)
{
	static const char *const files[CGROUP_CONTROLLERS][2] = {
		[CGROUP_MEMORY] = {"memory.events", "memory.oom_control"},
		[CGROUP_PIDS] = {"pids.events", "pids.events"},
	};

	for (int i = 0; i < 2 && group->folders[controller] >= 0; i++) {
		int fd = openat(group->folders[controller], files[controller][i],
				O_RDONLY | O_CLOEXEC);

		if (fd >= 0)
			return fd;
	}
	return -1;
}

uint64_t cgroup_count(int count_fd, enum cgroup_controller controller)
{
	static const char *const keys[] = {[CGROUP_MEMORY] = "oom_kill", [CGROUP_PIDS] = "max"};
	char text[TEXT_MAX];
	ssize_t size = count_fd < 0 ? -1 : pread(count_fd, text, sizeof(text) - 1, 0);
	struct str rest, line, key, number;

	if (size <= 0)
		return 0;
	text[size] = '\0';
	rest = (struct str){text, (size_t)size};
	while (str_next_line(&rest, &line)) {
		if (str_next_word(&line, &key) && str_is(key, keys[controller]) &&
		    str_next_word(&line, &number))
			return strtoull(number.data, NULL, 10);
	}
	return 0;
}
