/* cgroup_find: where groups can be made, as /proc tells; see cgroup.h. */
#include "sandbox/cgroup.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 20 }; /* of /proc/self/cgroup and of a group's own lists */

static const char *const names[] = {[CGROUP_MEMORY] = "memory", [CGROUP_PIDS] = "pids"};

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

/* Is MOUNT a cgroup file system of TYPE, for version 1 with CONTROLLER among its options? */
static bool mount_fits(const struct mount *mount, const char *type, const char *controller)
{
	return str_is(mount->type, type) &&
	       (!*controller || has_word(mount->super, ',', controller));
}

/* The folder of GROUP, which begins with what is mounted; "" when it lies outside. */
static void folder_of(const char *root, struct str mounts, const char *type,
		      const char *controller, struct str group, struct buf *folder)
{
	struct mount mount;

	buf_clear(folder);
	while (mounts_next(&mounts, &mount)) {
		struct str base = mount.root;

		if (!mount_fits(&mount, type, controller))
			continue;
		if (str_is(base, "/"))
			base.size = 0;
		if (!str_starts(group, base))
			continue;
		if (!buf_adds(folder, root) || !mounts_add_path(mount.point, folder) ||
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
		/*
		 * EBUSY where processes live in this group: the caller then tries the one
		 * above.
		 */
		if (i == 0 &&
		    !fd_write_at(folder_fd, "cgroup.subtree_control", "+memory +pids"))
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
		/*
		 * A folder above the mount is no cgroup: its files are missing, so it
		 * fails.
		 */
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
	buf_init(&mounts, MOUNTS_BYTES_MAX);
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
