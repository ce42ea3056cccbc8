/*
 * cgroup: makes, fills, reads and removes control groups, and finds the place for them.
 */

#include "sandbox/cgroup.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <unistd.h>

enum {
	/* for the small files here; a longer list of processes is not empty */
	TEXT_MAX = 4096,
	STAT_MAX = 64 << 10, /* memory.stat has some hundred lines */
	/* of /proc/PID/stat, counted behind the name: the start time */
	START_FIELD = 20,
};

#define PREFIX   "glovebox-"
#define PROGRAMS "programs"
#define WORKER   "worker"

static void folders_none(int folders[CGROUP_FOLDERS])
{
	for (int i = 0; i < CGROUP_FOLDERS; i++)
		folders[i] = -1;
}

static void folders_close(int folders[CGROUP_FOLDERS])
{
	for (int i = 0; i < CGROUP_FOLDERS; i++)
		fd_close(&folders[i]);
}

/*
 * The start time of PID in ticks since boot. Pid and start time together identify a
 * process for good.
 */
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
	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		fd_close(&group->folders[i]);
		fd_close(&group->procs[i]);
	}
	for (int i = 0; i < CGROUP_COUNTERS; i++)
		fd_close(&group->counts[i]);
	fd_close(&group->tasks);
	fd_close(&group->usage);
	fd_close(&group->programs);
	fd_close(&group->worker);
}

/* The file NAME of FOLDER, opened at the first call; -1 when there is none. */
static int held(int *fd, int folder, const char *name, int flags)
{
	if (*fd < 0 && folder >= 0)
		*fd = openat(folder, name, flags | O_CLOEXEC);
	return *fd;
}

/* False when FD, which may be -1, holds no number. */
static bool number_read(int fd, uint64_t *number)
{
	char text[32];
	ssize_t size = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (size <= 0)
		return false;
	text[size] = '\0';
	*number = strtoull(text, NULL, 10);
	return true;
}

static bool limit_memory(int fd, int version, uint64_t bytes)
{
	char memory[32];

	(void)snprintf(memory, sizeof(memory), "%" PRIu64, bytes);
	if (!fd_write_at(fd, version == 2 ? "memory.max" : "memory.limit_in_bytes", memory))
		return false;
	/* This may fail: kernels count swap only when they are configured to. */
	if (version == 2)
		(void)fd_write_at(fd, "memory.swap.max", "0");
	else
		(void)fd_write_at(fd, "memory.memsw.limit_in_bytes", memory);
	return true;
}

static bool limit(const struct cgroup *group, int version, const struct cgroup_limits *limits)
{
	char pids[32];
	int fd = group->folders[CGROUP_MEMORY];

	(void)snprintf(pids, sizeof(pids), "%" PRIu64, limits->pids);
	if (fd >= 0 && !limit_memory(fd, version, limits->memory))
		return false;
	fd = group->folders[CGROUP_PIDS];
	return fd < 0 || fd_write_at(fd, "pids.max", pids);
}

static int folder_make(int above, const char *name)
{
	if (mkdirat(above, name, 0755) < 0)
		return -1;
	return openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/*
 * In version 2 a group that gives a controller to the groups below it may not hold
 * processes. So the worker and the programs get a group each.
 */
static bool divide(struct cgroup *group, int version, const struct cgroup_limits *limits)
{
	int above = group->folders[CGROUP_MEMORY];

	if (above < 0)
		return true;
	if (version == 2) {
		if (!fd_write_at(above, "cgroup.subtree_control", "+memory"))
			return false;
		group->worker = folder_make(above, WORKER);
		if (group->worker < 0)
			return false;
	}
	group->programs = folder_make(above, PROGRAMS);
	return group->programs >= 0 &&
	       limit_memory(group->programs, version, limits->programs);
}

bool cgroup_make(const struct cgroup_place *place, unsigned number,
		 const struct cgroup_limits *limits, struct cgroup *group, struct err *err)
{
	struct cgroup made = CGROUP_BLANK;
	int code;

	(void)snprintf(made.name, sizeof(made.name), "%d-%u", (int)getpid(), number);
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
	if (limit(&made, place->version, limits) && divide(&made, place->version, limits)) {
		*group = made;
		return true;
	}
failed:
	code = errno;
	(void)cgroup_remove(place, &made);
	return err_set(err, code, "a control group: %s", strerror(code));
}

/*
 * The folder that counts CONTROLLER for the worker, or with PROGRAM for the programs;
 * -1: none does.
 */
static int place_of(const struct cgroup *group, int controller, bool program)
{
	if (group->worker >= 0)
		return program ? group->programs : group->worker;
	if (program && controller == CGROUP_MEMORY && group->programs >= 0)
		return group->programs;
	return group->folders[controller];
}

/* Write TEXT to cgroup.procs of FOLDER, which PROCS keeps open; false with errno. */
static bool enter_held(int *procs, int folder, const char *text)
{
	const size_t size = strlen(text);
	const int fd = held(procs, folder, "cgroup.procs", O_WRONLY);

	return fd >= 0 && pwrite(fd, text, size, 0) == (ssize_t)size;
}

/*
 * Enter the pids group before the memory group, so that a process in a memory group is
 * always in a pids group as well.
 */
static bool enter(struct cgroup *group, pid_t pid, bool program, struct err *err)
{
	char text[32];
	int last = -1;

	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	for (int i = CGROUP_CONTROLLERS - 1; i >= 0; i--) {
		const int folder = place_of(group, i, program);

		if (folder < 0 || folder == last)
			continue;
		last = folder;
		if (!(program ? fd_write_at(folder, "cgroup.procs", text)
			      : enter_held(&group->procs[i], folder, text)))
			return err_set(err, errno,
				       "moving a worker into its control group: %s",
				       strerror(errno));
	}
	return true;
}

bool cgroup_enter(struct cgroup *group, pid_t pid, struct err *err)
{
	return enter(group, pid, false, err);
}

bool cgroup_enter_program(struct cgroup *group, pid_t pid, struct err *err)
{
	return enter(group, pid, true, err);
}

/*
 * Open the lists each time: in version 1 a descriptor that stays open returns lists
 * that are up to a second old.
 */
static bool lists_are_empty(const struct cgroup *group)
{
	const int fds[] = {group->folders[CGROUP_MEMORY], group->folders[CGROUP_PIDS],
			   group->programs, group->worker};
	bool empty = true;
	struct buf text;

	buf_init(&text, TEXT_MAX);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]) && empty; i++)
		empty = fds[i] < 0 ||
			(fd_read_at(fds[i], "cgroup.procs", &text) && text.size == 0);
	buf_fini(&text);
	return empty;
}

bool cgroup_is_empty(struct cgroup *group)
{
	int fd = held(&group->tasks, group->folders[CGROUP_PIDS], "pids.current", O_RDONLY);
	uint64_t tasks;

	return number_read(fd, &tasks) ? tasks == 0 : lists_are_empty(group);
}

static bool remove_name(const struct cgroup_place *place, const char *name)
{
	static const char *const below[] = {"/" PROGRAMS, "/" WORKER, ""};
	bool gone = true;

	for (int i = 0; i < CGROUP_CONTROLLERS; i++) {
		for (size_t j = 0; j < sizeof(below) / sizeof(below[0]); j++) {
			char path[NAME_MAX + sizeof("/" PROGRAMS)];

			(void)snprintf(path, sizeof(path), "%s%s", name, below[j]);
			if (place->folders[i] >= 0 &&
			    unlinkat(place->folders[i], path, AT_REMOVEDIR) < 0 &&
			    errno != ENOENT)
				gone = false;
		}
	}
	return gone;
}

bool cgroup_remove(const struct cgroup_place *place, struct cgroup *group)
{
	group_close(group);
	return remove_name(place, group->name);
}

int cgroup_count_file(struct cgroup *group, enum cgroup_controller controller)
{
	static const char *const files[CGROUP_COUNTERS][2] = {
		[CGROUP_MEMORY] = {"memory.events", "memory.oom_control"},
		[CGROUP_PIDS] = {"pids.events", "pids.events"},
		[CGROUP_PROGRAMS] = {"memory.oom_control", "memory.oom_control"},
	};
	int folder = controller == CGROUP_PROGRAMS ? group->programs
						   : group->folders[controller];

	(void)held(&group->counts[controller], folder, files[controller][0], O_RDONLY);
	return held(&group->counts[controller], folder, files[controller][1], O_RDONLY);
}

/* The number behind KEY in a text whose lines are a key and a number. */
static uint64_t number_of(struct str rest, const char *key)
{
	struct str line, word, number;

	while (str_next_line(&rest, &line)) {
		if (str_next_word(&line, &word) && str_is(word, key) &&
		    str_next_word(&line, &number))
			return strtoull(number.data, NULL, 10);
	}
	return 0;
}

uint64_t cgroup_count(int count_fd, enum cgroup_controller controller)
{
	char text[TEXT_MAX];
	ssize_t size = count_fd < 0 ? -1 : pread(count_fd, text, sizeof(text) - 1, 0);

	if (size <= 0)
		return 0;
	text[size] = '\0';
	return number_of((struct str){text, (size_t)size},
			 controller == CGROUP_PIDS ? "max" : "oom_kill");
}

uint64_t cgroup_usage(struct cgroup *group)
{
	const bool second = group->worker >= 0;
	int fd = held(&group->usage, group->folders[CGROUP_MEMORY],
		      second ? "memory.current" : "memory.usage_in_bytes", O_RDONLY);
	uint64_t bytes;

	return number_read(fd, &bytes) ? bytes : UINT64_MAX;
}

uint64_t cgroup_left_memory(const struct cgroup *group)
{
	int fd = group->folders[CGROUP_MEMORY];
	uint64_t left = 0;
	struct buf text;

	buf_init(&text, STAT_MAX);
	if (fd >= 0 && fd_read_at(fd, "memory.stat", &text))
		left = number_of(buf_str(&text),
				 group->worker >= 0 ? "shmem" : "total_shmem");
	buf_fini(&text);
	return left;
}

/* Finds the folders in which groups can be made, from /proc. */

enum { LIST_MAX = 1 << 20 }; /* of /proc/self/cgroup and of a group's own lists */

/* The controllers of version 1. CGROUP_IO is missing (cgroup.h). */
static const char *const names[] = {
	[CGROUP_MEMORY] = "memory", [CGROUP_PIDS] = "pids", [CGROUP_TIME] = "cpuacct", [CGROUP_CPU] = "cpu"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

static bool read_below(const char *root, const char *path, struct buf *text)
{
	char whole[PATH_MAX];

	(void)snprintf(whole, sizeof(whole), "%s%s", root, path);
	return fd_read_at(AT_FDCWD, whole, text);
}

static bool has_word(struct str list, char separator, const char *word)
{
	size_t size = strlen(word);

	for (size_t at = 0; at < list.size;) {
		const char *end = memchr(list.data + at, separator, list.size - at);
		size_t length = end ? (size_t)(end - list.data) - at : list.size - at;

		if (length == size && memcmp(list.data + at, word, size) == 0)
			return true;
		at += length + 1;
	}
	return false;
}

/*
 * The group of this process for CONTROLLER ("" for version 2), from a line of
 * /proc/self/cgroup such as "4:memory:/a/b".
 */
static bool group_path(struct str text, const char *controller, struct str *path)
{
	struct str line;

	while (str_next_line(&text, &line)) {
		size_t first = str_find(line, STR(":"), 0);
		size_t second =
			first == (size_t)-1 ? first : str_find(line, STR(":"), first + 1);
		struct str list;

		if (second == (size_t)-1)
			continue;
		list = str_part(line, first + 1, second - first - 1);
		if (*controller ? has_word(list, ',', controller) : list.size == 0) {
			*path = str_part(line, second + 1, line.size);
			return true;
		}
	}
	return false;
}

/*
 * Is MOUNT a cgroup file system of TYPE, for version 1 with CONTROLLER among its
 * options?
 */
static bool mount_fits(const struct mount *mount, const char *type, const char *controller)
{
	return str_is(mount->type, type) &&
	       (!*controller || has_word(mount->super, ',', controller));
}

/*
 * The folder of GROUP below the mount point. GROUP begins with the root of the mount;
 * "" when it lies outside of the mount.
 */
static void folder_of(const char *root, struct str mounts, const char *type,
		      const char *controller, struct str group, struct buf *folder)
{
	struct mount mount;

	buf_clear(folder);
	while (fd_mounts_next(&mounts, &mount)) {
		struct str base = mount.root;

		if (!mount_fits(&mount, type, controller))
			continue;
		if (str_is(base, "/"))
			base.size = 0;
		if (!str_starts(group, base))
			continue;
		if (!buf_adds(folder, root) || !fd_mounts_add_path(mount.point, folder) ||
		    !buf_addstr(folder, str_part(group, base.size, group.size)))
			buf_clear(folder);
		return;
	}
}

static bool may_be_changed(int folder_fd)
{
	return faccessat(folder_fd, ".", W_OK | X_OK, AT_EACCESS) == 0 &&
	       faccessat(folder_fd, "cgroup.procs", W_OK, AT_EACCESS) == 0;
}

/*
 * Do groups below FOLDER_FD have CONTROLLER, if necessary after we enabled it? EBUSY when processes
 * live in this group: the caller then tries the group above.
 */
static bool gives_controller(int folder_fd, const char *controller, struct buf *text)
{
	char enable[32];

	for (int i = 0; i < 2; i++) {
		if (!fd_read_at(folder_fd, "cgroup.subtree_control", text))
			return false;
		if (has_word(str_trim(buf_str(text)), ' ', controller))
			return true;
		(void)snprintf(enable, sizeof(enable), "+%s", controller);
		if (i == 0 && !fd_write_at(folder_fd, "cgroup.subtree_control", enable))
			return false;
	}
	return false;
}

/*
 * Version 2: look beside our group, or below it where the kernel lets a group hold
 * processes and groups.
 */
static void find_unified(const char *root, struct str own, struct str mounts,
			 struct cgroup_place *place)
{
	struct buf folder, text;
	struct str group;
	char *slash;

	if (!group_path(own, "", &group))
		return;
	buf_init(&folder, PATH_MAX);
	buf_init(&text, LIST_MAX);
	folder_of(root, mounts, "cgroup2", "", group, &folder);
	for (int i = 0; i < 2 && folder.size > 0 && !place->version; i++) {
		auto_close int fd = open(folder.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0 && may_be_changed(fd) && gives_controller(fd, "memory", &text) &&
		    gives_controller(fd, "pids", &text)) {
			place->version = 2;
			place->folders[CGROUP_PIDS] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
			place->folders[CGROUP_TIME] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
			if (gives_controller(fd, "cpu", &text))
				place->folders[CGROUP_CPU] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
			if (gives_controller(fd, "io", &text))
				place->folders[CGROUP_IO] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
			place->folders[CGROUP_MEMORY] = fd_take(&fd);
		}
		slash = strrchr(folder.data, '/');
		/*
		 * Stop above the mount: such a folder has no files of a control group,
		 * so it fails.
		 */
		if (!slash || slash == folder.data)
			break;
		buf_truncate(&folder, (size_t)(slash - folder.data));
	}
	buf_fini(&text);
	buf_fini(&folder);
}

static void find_single(const char *root, struct str own, struct str mounts,
			int controller, struct cgroup_place *place)
{
	struct buf folder;
	struct str group;

	if (!group_path(own, names[controller], &group))
		return;
	buf_init(&folder, PATH_MAX);
	folder_of(root, mounts, "cgroup", names[controller], group, &folder);
	if (folder.size > 0) {
		auto_close int fd = open(folder.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0 && may_be_changed(fd)) {
			place->version = 1;
			place->folders[controller] = fd_take(&fd);
		}
	}
	buf_fini(&folder);
}

void cgroup_find(const char *root, struct cgroup_place *place)
{
	struct buf own, mounts;

	*place = (struct cgroup_place){0};
	folders_none(place->folders);
	buf_init(&own, LIST_MAX);
	buf_init(&mounts, MOUNTS_BYTES_MAX);
	if (read_below(root, "/proc/self/cgroup", &own) &&
	    read_below(root, "/proc/self/mountinfo", &mounts)) {
		find_unified(root, buf_str(&own), buf_str(&mounts), place);
		for (int i = 0; i < NAMES && place->version != 2; i++)
			find_single(root, buf_str(&own), buf_str(&mounts), i, place);
	}
	buf_fini(&mounts);
	buf_fini(&own);
}

void cgroup_leave(struct cgroup_place *place)
{
	folders_close(place->folders);
	place->version = 0;
}

/* The group of a front, and the sweep of those that have ended. */

enum {
	DEPTH_MAX = 4, /* front, cell, worker, programs */
	/* another process of this front removes the group at the same moment */
	FRONT_TRIES = 8,
};

static int folder_open(int above, const char *name)
{
	return openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Remove the group NAME below ABOVE and all groups in it. False when one is not empty. */
static bool tree_remove(int above, const char *name, int depth)
{
	int fd = depth > 0 ? folder_open(above, name) : -1;
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);

	if (folder == NULL)
		fd_close(&fd);
	for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			(void)tree_remove(dirfd(folder), entry->d_name, depth - 1);
	}
	if (folder != NULL)
		(void)closedir(folder);
	return unlinkat(above, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

/*
 * Remove the groups of fronts below FOLDER_FD that nobody holds. FIRST: the folder of another
 * controller, which was swept before: a front whose group is still there lives. -1: none.
 */
static void sweep(int folder_fd, int first)
{
	int fd = folder_open(folder_fd, ".");
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);

	if (folder == NULL)
		fd_close(&fd);
	for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 ||
		    (first >= 0 && faccessat(first, entry->d_name, F_OK, 0) == 0))
			continue;
		auto_close int group = folder_open(folder_fd, entry->d_name);
		if (group >= 0 && flock(group, LOCK_EX | LOCK_NB) == 0)
			(void)tree_remove(folder_fd, entry->d_name, DEPTH_MAX);
	}
	if (folder != NULL)
		(void)closedir(folder);
}

static void front_name(pid_t front, char name[CGROUP_NAME_MAX])
{
	(void)snprintf(name, CGROUP_NAME_MAX, PREFIX "%d-%" PRIu64, (int)front,
		       start_of(front));
}

/* Version 2: groups below FOLDER_FD get the same controllers as it has. */
static void controllers_pass(int folder_fd)
{
	static const char *const all[] = {"+memory", "+pids", "+cpu", "+io"};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		(void)fd_write_at(folder_fd, "cgroup.subtree_control", all[i]);
}

/*
 * Hold the group NAME below ABOVE, which is made when it is not there (*MADE). -1 with errno.
 */
static int front_hold(int above, const char *name, bool *made)
{
	for (int i = 0; i < FRONT_TRIES; i++) {
		struct stat held, there;
		int fd;

		*made = mkdirat(above, name, 0755) == 0;
		if (!*made && errno != EEXIST)
			return -1;
		fd = folder_open(above, name);
		if (fd >= 0 && flock(fd, LOCK_SH) == 0 && fstat(fd, &held) == 0 &&
		    fstatat(above, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		    held.st_ino == there.st_ino)
			return fd;
		/* Another process took it for one of a dead front, or was the last to leave. */
		fd_close(&fd);
	}
	errno = EAGAIN;
	return -1;
}

bool cgroup_front(struct cgroup_place *place, pid_t front, struct err *err)
{
	int folders[CGROUP_FOLDERS];
	char name[CGROUP_NAME_MAX];
	bool made, swept = false;
	int first = -1;

	/* Nobody can ask for the start of FRONT any more once it was waited for. */
	front_name(front, name);
	folders_none(folders);
	for (int i = 0; i < CGROUP_FOLDERS; i++) {
		if (place->folders[i] < 0)
			continue;
		folders[i] = front_hold(place->folders[i], name, &made);
		if (folders[i] < 0) {
			const int code = errno;

			folders_close(folders);
			return err_set(err, code, "a control group of this program: %s",
				       strerror(code));
		}
		/* In version 2 all are one folder. */
		if (made && !(swept && place->version == 2)) {
			sweep(place->folders[i], first);
			first = first < 0 ? place->folders[i] : first;
		}
		swept |= made;
	}
	if (swept && place->version == 2)
		controllers_pass(folders[CGROUP_TIME]);
	folders_close(place->folders);
	memcpy(place->folders, folders, sizeof(folders));
	(void)snprintf(place->front, sizeof(place->front), "%s", name);
	return true;
}

void cgroup_front_leave(struct cgroup_place *place)
{
	for (int i = 0; i < CGROUP_FOLDERS; i++) {
		if (place->folders[i] < 0)
			continue;
		auto_close int above = folder_open(place->folders[i], "..");
		if (above >= 0)
			(void)unlinkat(above, place->front, AT_REMOVEDIR);
	}
	cgroup_leave(place);
}

/* The group of a whole cell. */

#define OWN "own"

enum {
	CPU_PERIOD_US = 100000,    /* the kernel's own */
	CPU_QUOTA_LEAST_US = 1000, /* the least that it takes */
	REMOVE_STEP_MS = 2,
};

/* The number of the disk of the block device DEVICE: a partition has no limits of its own. */
static bool disk_of(dev_t device, char number[32])
{
	char path[96];
	struct buf text;
	bool found;

	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition",
		       major(device), minor(device));
	(void)snprintf(number, 32, "%u:%u", major(device), minor(device));
	if (access(path, F_OK) < 0)
		return major(device) != 0;
	(void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../dev", major(device),
		       minor(device));
	buf_init(&text, TEXT_MAX);
	found = fd_read_at(AT_FDCWD, path, &text);
	if (found)
		(void)snprintf(number, 32, "%.*s", (int)str_trim(buf_str(&text)).size,
			       str_trim(buf_str(&text)).data);
	buf_fini(&text);
	return found;
}

static bool limit_writes(int folder, const struct cgroup_cell_limits *limits, struct err *err)
{
	for (size_t i = 0; i < limits->disk_count; i++) {
		char number[32], line[96];

		if (!disk_of(limits->disks[i], number))
			return err_set(err, ENODEV,
				       "a folder that it may write lies on no single disk");
		(void)snprintf(line, sizeof(line), "%s wbps=%" PRIu64, number,
			       limits->io_write);
		if (!fd_write_at(folder, "io.max", line))
			return err_set(err, errno, "io.max of the disk %s: %s", number,
				       strerror(errno));
	}
	return true;
}

static bool limit_cpus(int folder, int version, double cpus, struct err *err)
{
	const double wanted = cpus * CPU_PERIOD_US;
	const long quota = wanted < CPU_QUOTA_LEAST_US ? CPU_QUOTA_LEAST_US : (long)wanted;
	char period[32], text[64];
	bool ok;

	(void)snprintf(period, sizeof(period), "%d", CPU_PERIOD_US);
	(void)snprintf(text, sizeof(text), version == 2 ? "%ld %s" : "%ld", quota, period);
	if (version == 2)
		ok = fd_write_at(folder, "cpu.max", text);
	else
		/* Version 1 refuses what is more than a group above gives, which bounds this one already. */
		ok = fd_write_at(folder, "cpu.cfs_period_us", period) &&
		     (fd_write_at(folder, "cpu.cfs_quota_us", text) || errno == EINVAL);
	return ok || err_set(err, errno, "limiting the processors of a control group: %s",
			     strerror(errno));
}

static void limit_pids(const struct cgroup_cell *cell, uint64_t pids)
{
	const int folder = cell->folders[cell->version == 2 ? CGROUP_TIME : CGROUP_PIDS];
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRIu64, pids);
	if (folder >= 0)
		(void)fd_write_at(folder, "pids.max", text);
}

/* Make the group in each folder of PLACE, in version 2 in the one that they are. */
static bool cell_folders(const struct cgroup_place *place, bool limits_cpus,
			 struct cgroup_cell *cell)
{
	bool made = false;

	for (int i = 0; i < CGROUP_FOLDERS; i++) {
		const int above = place->folders[i];

		/* To enter this one of version 1 takes the kernel milliseconds. */
		if (above < 0 || (i == CGROUP_CPU && place->version == 1 && !limits_cpus))
			continue;
		if (!(made && place->version == 2)) {
			/* One of the same name is left over, and nobody is in it. */
			if (mkdirat(above, cell->name, 0755) < 0 &&
			    (errno != EEXIST || !tree_remove(above, cell->name, DEPTH_MAX) ||
			     mkdirat(above, cell->name, 0755) < 0))
				return false;
			made = true;
		}
		cell->folders[i] = folder_open(above, cell->name);
		if (cell->folders[i] < 0)
			return false;
	}
	errno = EOPNOTSUPP;
	return made;
}

/* Open the doors of CELL. In version 2 its processes need a group below it, beside others. */
static bool cell_doors(struct cgroup_cell *cell)
{
	if (cell->version == 2) {
		controllers_pass(cell->folders[CGROUP_TIME]);
		cell->doors[0] = folder_make(cell->folders[CGROUP_TIME], OWN);
		return cell->doors[0] >= 0;
	}
	for (int i = 0; i < CGROUP_FOLDERS; i++) {
		if (cell->folders[i] < 0)
			continue;
		cell->doors[i] = openat(cell->folders[i], "tasks", O_WRONLY | O_CLOEXEC);
		if (cell->doors[i] < 0)
			return false;
	}
	return true;
}

bool cgroup_cell_make(const struct cgroup_place *place, unsigned number,
		      const struct cgroup_cell_limits *limits, struct cgroup_cell *cell,
		      struct err *err)
{
	const int first = place->folders[CGROUP_TIME];
	bool ok;

	*cell = (struct cgroup_cell){.version = place->version};
	folders_none(cell->folders);
	folders_none(cell->doors);
	/*
	 * Cells of one process that do not share PLACE each hold a descriptor of their own for
	 * the group of the front, so its number tells them apart.
	 */
	(void)snprintf(cell->name, sizeof(cell->name), "cell-%d-%d-%u", (int)getpid(),
		       first, number);
	ok = cell_folders(place, limits->cpus > 0, cell) ||
	     err_set(err, errno, "a control group of the cell: %s", strerror(errno));
	ok = ok && (limits->cpus <= 0 || limit_cpus(cell->folders[CGROUP_CPU],
						    cell->version, limits->cpus, err));
	if (ok && limits->pids > 0)
		limit_pids(cell, limits->pids);
	ok = ok && (limits->io_write == 0 ||
		    limit_writes(cell->folders[CGROUP_IO], limits, err));
	ok = ok && (cell_doors(cell) ||
		    err_set(err, errno, "entering the control group of the cell: %s",
			    strerror(errno)));
	folders_close(cell->folders);
	if (!ok)
		cgroup_cell_remove(place, cell, 0);
	return ok;
}

bool cgroup_cell_enter(const int doors[CGROUP_FOLDERS], struct err *err)
{
	for (int i = 0; i < CGROUP_FOLDERS; i++) {
		/* For a single thread that moves itself the kernel waits for nobody. */
		if (doors[i] >= 0 && write(doors[i], "0", 1) != 1)
			return err_set(err, errno,
				       "entering the control group of the cell: %s",
				       strerror(errno));
	}
	return true;
}

void cgroup_cell_remove(const struct cgroup_place *place, struct cgroup_cell *cell,
			int wait_ms)
{
	if (cell->version == 0)
		return;
	folders_close(cell->doors);
	for (int i = 0; i < CGROUP_FOLDERS; i++) {
		while (place->folders[i] >= 0 &&
		       !tree_remove(place->folders[i], cell->name, DEPTH_MAX) &&
		       wait_ms > 0) {
			(void)poll(NULL, 0, REMOVE_STEP_MS);
			wait_ms -= REMOVE_STEP_MS;
		}
	}
	cell->version = 0;
}

bool cgroup_cell_open(struct cgroup_place *place, const char *name, struct err *err)
{
	for (int i = 0; i < CGROUP_FOLDERS; i++) {
		auto_close int above = fd_take(&place->folders[i]);

		if (above < 0)
			continue;
		place->folders[i] = folder_open(above, name);
		if (place->folders[i] < 0)
			return err_set(err, errno, "the control group of the cell: %s",
				       strerror(errno));
	}
	return true;
}

/* The whole number in the file NAME of FOLDER (or -1); UINT64_MAX: there is none. */
static uint64_t number_at(int folder, const char *name)
{
	auto_close int fd = folder >= 0 ? openat(folder, name, O_RDONLY | O_CLOEXEC) : -1;
	uint64_t number;

	return number_read(fd, &number) ? number : UINT64_MAX;
}

/* Sum of all numbers behind KEY= in io.stat, which has a line for each disk. */
static uint64_t sum_of(struct str text, const char *key)
{
	uint64_t sum = 0;
	struct str word;

	while (str_next_word(&text, &word)) {
		if (str_starts(word, str_of(key)))
			sum += strtoull(word.data + strlen(key), NULL, 10);
	}
	return sum;
}

static void read_tasks(int folder, struct cgroup_usage *usage)
{
	struct buf text;

	buf_init(&text, STAT_MAX);
	usage->tasks_peak = number_at(folder, "pids.peak");
	usage->tasks_refused = 0;
	if (folder >= 0 && fd_read_at(folder, "pids.events", &text))
		usage->tasks_refused = number_of(buf_str(&text), "max");
	buf_fini(&text);
}

static void read_unified(const int folders[CGROUP_FOLDERS], struct cgroup_usage *usage)
{
	const int folder = folders[CGROUP_TIME];
	struct buf text;

	buf_init(&text, STAT_MAX);
	if (fd_read_at(folder, "cpu.stat", &text)) {
		usage->cpu_us = number_of(buf_str(&text), "usage_usec");
		usage->user_us = number_of(buf_str(&text), "user_usec");
	}
	usage->memory_peak = number_at(folder, "memory.peak");
	read_tasks(folder, usage);
	if (folders[CGROUP_IO] >= 0 && fd_read_at(folder, "io.stat", &text)) {
		usage->read = sum_of(buf_str(&text), "rbytes=");
		usage->written = sum_of(buf_str(&text), "wbytes=");
		/* Written, and soon to be on the disk. */
		if (fd_read_at(folder, "memory.stat", &text))
			usage->written += number_of(buf_str(&text), "file_dirty") +
					  number_of(buf_str(&text), "file_writeback");
	}
	buf_fini(&text);
}

static void read_single(const int folders[CGROUP_FOLDERS], struct cgroup_usage *usage)
{
	enum { NS_OF_US = 1000 };
	const int time = folders[CGROUP_TIME];

	usage->cpu_us = number_at(time, "cpuacct.usage");
	usage->user_us = number_at(time, "cpuacct.usage_user");
	if (usage->cpu_us != UINT64_MAX)
		usage->cpu_us /= NS_OF_US;
	if (usage->user_us != UINT64_MAX)
		usage->user_us /= NS_OF_US;
	/* The kernel counts this part by ticks, and the whole exactly. */
	if (usage->user_us > usage->cpu_us)
		usage->user_us = usage->cpu_us;
	usage->memory_peak = number_at(folders[CGROUP_MEMORY], "memory.max_usage_in_bytes");
	read_tasks(folders[CGROUP_PIDS], usage);
}

void cgroup_cell_read(const struct cgroup_place *place, const struct cgroup_cell *cell,
		      struct cgroup_usage *usage)
{
	int folders[CGROUP_FOLDERS];

	memset(usage, 0xff, sizeof(*usage));
	for (int i = 0; i < CGROUP_FOLDERS; i++)
		folders[i] = place->folders[i] >= 0
				     ? folder_open(place->folders[i], cell->name)
				     : -1;
	if (cell->version == 2)
		read_unified(folders, usage);
	else
		read_single(folders, usage);
	folders_close(folders);
}
