/*
 * view_place: putting mounts into the view under construction; see view_parts.h. Every
 * target is opened beneath the new root, so no symlink in a tree can send a mount elsewhere.
 */
#include "sandbox/view_parts.h"

#include "base/fd.h"
#include "base/kernel.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool view_fail(struct err *err, const char *step, const char *path)
{
	int code = errno;

	return err_set(err, code, "view: %s %s: %s", step, path, strerror(code));
}

static bool set_option(int context, const char *key, const char *text)
{
	return syscall(KERNEL_FSCONFIG, context, FSCONFIG_SET_STRING, key, text, 0) == 0;
}

int view_new_memory(uint64_t size, uint64_t files, mode_t mode, unsigned attributes)
{
	char size_text[32], files_text[32], mode_text[32];
	auto_close int context = (int)syscall(KERNEL_FSOPEN, "tmpfs", FSOPEN_CLOEXEC);

	(void)snprintf(size_text, sizeof(size_text), "%" PRIu64, size);
	(void)snprintf(files_text, sizeof(files_text), "%" PRIu64, files);
	(void)snprintf(mode_text, sizeof(mode_text), "%o", (unsigned)mode);
	if (context < 0 || !set_option(context, "size", size_text) ||
	    !set_option(context, "mode", mode_text) ||
	    (files > 0 && !set_option(context, "nr_inodes", files_text)) ||
	    syscall(KERNEL_FSCONFIG, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return (int)syscall(KERNEL_FSMOUNT, context, FSMOUNT_CLOEXEC, attributes);
}

int view_open(int root, const char *path, int flags)
{
	const struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS,
	};

	return (int)syscall(SYS_openat2, root, path[1] != '\0' ? path + 1 : ".", &how,
			    sizeof(how));
}

int view_make_folder(int root, const char *path)
{
	auto_close int folder = fcntl(root, F_DUPFD_CLOEXEC, 0);
	const char *at = path;
	char name[NAME_MAX + 1];

	while (folder >= 0 && *at == '/') {
		size_t length = strcspn(at + 1, "/");
		if (length == 0)
			break;
		if (length > NAME_MAX) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(name, at + 1, length);
		name[length] = '\0';
		at += 1 + length;
		if (mkdirat(folder, name, VIEW_FOLDER_MODE) < 0 && errno != EEXIST &&
		    errno != EROFS)
			return -1;
		int next = openat(folder, name,
				  O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
		fd_close(&folder);
		folder = next;
	}
	return fd_take(&folder);
}

bool view_hold_folder(struct view_building *building, const char *path, bool make)
{
	size_t size = (size_t)(path_base_name(path) - path);

	size -= size > 1; /* its slash, but for that of the root */
	if (building->folder >= 0 && strlen(building->held) == size &&
	    memcmp(building->held, path, size) == 0)
		return true;
	fd_close(&building->folder);
	if (size >= sizeof(building->held)) {
		errno = ENAMETOOLONG;
		return false;
	}
	memcpy(building->held, path, size);
	building->held[size] = '\0';
	building->folder = view_open(building->root, building->held, O_PATH | O_DIRECTORY);
	if (building->folder < 0 && errno == ENOENT && make)
		building->folder = view_make_folder(building->root, building->held);
	return building->folder >= 0;
}

bool view_place(struct view_building *building, int mount_fd, const char *path,
		bool is_folder, struct err *err)
{
	const char *name = path_base_name(path);

	if (!view_hold_folder(building, path, true))
		return view_fail(err, "opening the folder of", path);
	int made = is_folder
			   ? mkdirat(building->folder, name, VIEW_FOLDER_MODE)
			   : mknodat(building->folder, name, S_IFREG | VIEW_FILE_MODE, 0);
	if (made < 0 && errno != EEXIST && errno != EROFS)
		return view_fail(err, "making", path);
	if (kernel_move_mount_at(mount_fd, building->folder, name) < 0)
		return view_fail(err, "mounting", path);
	return true;
}

bool view_set_attributes(int tree, uint64_t set, const char *path, struct err *err)
{
	struct mount_attr attributes = {.attr_set = set};

	if (syscall(KERNEL_MOUNT_SETATTR, tree, "", AT_EMPTY_PATH | AT_RECURSIVE,
		    &attributes, sizeof(attributes)) < 0)
		return view_fail(err, "setting the mount attributes of", path);
	return true;
}
