/* cgroup: files of the kernel's cgroup file systems; see cgroup.h. */
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
	TEXT_MAX = 1 << 20, /* mountinfo of a busy host */
	COUNT_TEXT_MAX = 4096,
	START_FIELD = 20, /* of /proc/PID/stat, behind the name: when it began */
};

#define PREFIX "glovebox-"

static const char *const names[] = {[CGROUP_MEMORY] = "memory", [CGROUP_PIDS] = "pids"};

/* ---- where ---- */

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
 * This process's group for CONTROLLER ("" for version 2) as /proc/self/cgroup has it:
 * "4:memory:/a/b".
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
 * A line of /proc/self/mountinfo: "31 23 0:28 ROOT POINT OPTIONS … - TYPE SOURCE SUPER". True
 * when it is a cgroup file system of TYPE, for version 1 with CONTROLLER among SUPER.
 */
static bool mount_fits(struct str line, const char *type, const char *controller,
		       struct str *base, struct str *point)
{
	enum { FIELD_ROOT = 3, FIELD_POINT = 4, SUPER_AFTER_DASH = 3 };
	int dash = -1;
	bool typed = false;
	struct str word;

	for (int i = 0; str_next_word(&line, &word); i++) {
		if (i == FIELD_ROOT)
			*base = word;
		else if (i == FIELD_POINT)
			*point = word;
		else if (dash < 0 && str_is(word, "-"))
			dash = i;
		else if (dash >= 0 && i == dash + 1)
			typed = str_is(word, type);
		else if (dash >= 0 && i == dash + SUPER_AFTER_DASH)
			return typed && (!*controller || has_word(word, ',', controller));
	}
	return false;
}

/* The folder of GROUP, which begins with what is mounted; "" when it lies outside. */
static void folder_of(const char *root, struct str mounts, const char *type,
		      const char *controller, struct str group, struct buf *folder)
{
	struct str line, base = {0}, point = {0};

	buf_clear(folder);
	while (str_next_line(&mounts, &line)) {
		if (!mount_fits(line, type, controller, &base, &point))
			continue;
		if (str_is(base, "/"))
			base.size = 0;
		if (!str_starts(group, base))
			continue;
		(void)buf_addf(folder, "%s%.*s%.*s", root, (int)point.size, point.data,
			       (int)(group.size - base.size), group.data + base.size);
		return;
	}
}

static bool may_be_changed(int folder_fd)
{
	return faccessat(folder_fd, ".", W_OK | X_OK, AT_EACCESS) == 0 &&
	       faccessat(folder_fd, "cgroup.procs", W_OK, AT_EACCESS) == 0;
}

static bool write_at(int folder_fd, const char *name, const char *text)
{
	auto_close int fd = openat(folder_fd, name, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Do groups below FOLDER_FD have both controllers, perhaps after asking for them? */
static bool gives_controllers(int folder_fd, struct buf *text)
{
	for (int i = 0; i < 2; i++) {
		struct str list;

		if (!fd_read_at(folder_fd, "cgroup.subtree_control", text))
			return false;
		list = str_trim(buf_str(text));
		if (has_word(list, ' ', "memory") && has_word(list, ' ', "pids"))
			return true;
		/* Refused (EBUSY) where processes live: then the folder above must do. */
		if (i == 0 &&
		    !write_at(folder_fd, "cgroup.subtree_control", "+memory +pids"))
			return false;
	}
	return false;
}

/* Version 2: beside us, or below us where the kernel lets a group have both. */
static void find_unified(const char *root, struct str own, struct str mounts,
			 struct cgroup_place *place)
{
	struct buf folder, text;
	struct str group;
	char *slash;

	if (!group_path(own, "", &group))
		return;
	buf_init(&folder, PATH_MAX);
	buf_init(&text, TEXT_MAX);
	folder_of(root, mounts, "cgroup2", "", group, &folder);
	for (int i = 0; i < 2 && folder.size > 0 && !place->version; i++) {
		auto_close int fd = open(folder.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0 && may_be_changed(fd) && gives_controllers(fd, &text)) {
			place->version = 2;
			place->folders[CGROUP_PIDS] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
			place->folders[CGROUP_MEMORY] = fd_take(&fd);
		}
		slash = strrchr(folder.data, '/');
		/* What is above the mount is no cgroup any more: its files are missing. */
		if (!slash || slash == folder.data)
			break;
		buf_truncate(&folder, (size_t)(slash - folder.data));
	}
	buf_fini(&text);
	buf_fini(&folder);
}

static void find_single(const char *root, struct str own, struct str mounts,
			enum cgroup_controller controller, struct cgroup_place *place)
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

	*place = (struct cgroup_place){.folders = {-1, -1}};
	buf_init(&own, TEXT_MAX);
	buf_init(&mounts, TEXT_MAX);
	if (read_below(root, "/proc/self/cgroup", &own) &&
	    read_below(root, "/proc/self/mountinfo", &mounts)) {
		find_unified(root, buf_str(&own), buf_str(&mounts), place);
		for (int i = 0; i < CGROUP_CONTROLLERS && place->version != 2; i++)
			find_single(root, buf_str(&own), buf_str(&mounts),
				    (enum cgroup_controller)i, place);
	}
	buf_fini(&mounts);
	buf_fini(&own);
}

void cgroup_leave(struct cgroup_place *place)
{
	for (int i = 0; i < CGROUP_CONTROLLERS; i++)
		fd_close(&place->folders[i]);
	place->version = 0;
}

/* ---- a group ---- */

/* When PID began, in ticks since the machine did: with the pid a name for all time. */
static uint64_t start_of(pid_t pid)
{
	char path[64];
	struct buf text;
	uint64_t start = 0;
	const char *at;
	struct str rest, word;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	buf_init(&text, COUNT_TEXT_MAX);
	if (read_below("", path, &text) && (at = strrchr(text.data, ')')) != NULL) {
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
	    !write_at(fd, version == 2 ? "memory.max" : "memory.limit_in_bytes", memory))
		return false;
	/* Not everywhere: kernels count swap only when told to. */
	if (fd >= 0 && version == 2)
		(void)write_at(fd, "memory.swap.max", "0");
	else if (fd >= 0)
		(void)write_at(fd, "memory.memsw.limit_in_bytes", memory);
	fd = group->folders[CGROUP_PIDS];
	return fd < 0 || write_at(fd, "pids.max", pids);
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
		    !write_at(group->folders[i], "cgroup.procs", text))
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

/* ---- what it refused ---- */

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
	char text[COUNT_TEXT_MAX];
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
