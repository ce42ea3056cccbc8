/*
 * view: the cell's file system. A tmpfs becomes the new root, host trees are copied onto
 * it as mounts of their own, and the old root is let go. Every target is opened beneath
 * the new root, so no symlink in a tree can send a mount elsewhere.
 */
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "sandbox/kernel.h"
#include "sandbox/rules.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* The root holds mount points and a few small files, never data. */
#define ROOT_SIZE "4m"

/* Where texts and the sources of masks lie in the view. */
#define OWN_FOLDER   "/run/glovebox"
#define EMPTY_FILE   "nothing"
#define EMPTY_FOLDER "nothing.d"

enum { ROOT_MODE = 0755, OWN_FILE_MODE = 0444 };

/*
 * What is under construction. Entries come shallow before deep and sorted by path, so
 * those of one folder follow each other and a held folder is never covered afterwards.
 */
struct building {
	int root;
	int own;             /* OWN_FOLDER */
	unsigned texts;      /* in it */
	int folder;          /* where the last entry was placed; -1: nothing held yet */
	char held[PATH_MAX]; /* its path */
};

static bool fail(struct err *err, const char *step, const char *path)
{
	int code = errno;

	return err_set(err, code, "view: %s %s: %s", step, path, strerror(code));
}

/* A detached tmpfs. SIZE may be "4m" or a number. */
static int memory_new(const char *size, mode_t mode, unsigned attributes)
{
	char mode_text[16];
	auto_close int context = (int)syscall(KERNEL_FSOPEN, "tmpfs", FSOPEN_CLOEXEC);

	if (context < 0)
		return -1;
	(void)snprintf(mode_text, sizeof(mode_text), "%o", (unsigned)mode);
	if (syscall(KERNEL_FSCONFIG, context, FSCONFIG_SET_STRING, "size", size, 0) < 0 ||
	    syscall(KERNEL_FSCONFIG, context, FSCONFIG_SET_STRING, "mode", mode_text, 0) < 0 ||
	    syscall(KERNEL_FSCONFIG, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return (int)syscall(KERNEL_FSMOUNT, context, FSMOUNT_CLOEXEC, attributes);
}

static int target_open(int root, const char *path, int flags)
{
	const struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS,
	};

	return (int)syscall(SYS_openat2, root, path[1] != '\0' ? path + 1 : ".", &how,
			    sizeof(how));
}

/* Make PATH a directory of the view, with its parents, and open it. */
static int folder_make(int root, const char *path)
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
		if (mkdirat(folder, name, ROOT_MODE) < 0 && errno != EEXIST && errno != EROFS)
			return -1;
		int next = openat(folder, name,
				  O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
		fd_close(&folder);
		folder = next;
	}
	return fd_take(&folder);
}

/* Hold the folder that PATH lies in; MAKE: with what is missing of it. */
static bool folder_hold(struct building *building, const char *path, bool make)
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
	building->folder =
		target_open(building->root, building->held, O_PATH | O_DIRECTORY);
	if (building->folder < 0 && errno == ENOENT && make)
		building->folder = folder_make(building->root, building->held);
	return building->folder >= 0;
}

/*
 * The mount point is a directory, or an empty file for anything else. What exists is
 * left as it is; it is not followed when it is a link.
 */
static bool place_mount(struct building *building, int mount_fd, const char *path,
			bool is_folder, struct err *err)
{
	const char *name = path_base_name(path);

	if (!folder_hold(building, path, true))
		return fail(err, "opening the folder of", path);
	int made = is_folder ? mkdirat(building->folder, name, ROOT_MODE)
			     : mknodat(building->folder, name, S_IFREG | OWN_FILE_MODE, 0);
	if (made < 0 && errno != EEXIST && errno != EROFS)
		return fail(err, "making", path);
	if (kernel_move_mount_at(mount_fd, building->folder, name) < 0)
		return fail(err, "mounting", path);
	return true;
}

static bool attributes_set(int tree, uint64_t set, const char *path, struct err *err)
{
	struct mount_attr attributes = {.attr_set = set};

	if (syscall(KERNEL_MOUNT_SETATTR, tree, "", AT_EMPTY_PATH | AT_RECURSIVE,
		    &attributes, sizeof(attributes)) < 0)
		return fail(err, "setting the mount attributes of", path);
	return true;
}

/*
 * The tree that SOURCE leads to now; it must be the one that was held before (the name
 * may have been swapped).
 */
static bool source_open(const struct view_entry *entry, int *tree, struct err *err)
{
	struct stat held, found;

	if (entry->detached) {
		*tree = fcntl(entry->fd, F_DUPFD_CLOEXEC, 0);
		return *tree >= 0 || fail(err, "holding", entry->source);
	}
	auto_close int fd =
		kernel_open_tree(AT_FDCWD, entry->source,
				 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (fd < 0)
		return fail(err, "opening", entry->source);
	if (entry->fd >= 0 && (fstat(entry->fd, &held) < 0 || fstat(fd, &found) < 0 ||
			       held.st_dev != found.st_dev || held.st_ino != found.st_ino))
		return err_set(err, ESTALE, "view: %s was replaced while the cell was built",
			       entry->source);
	*tree = fd_take(&fd);
	return true;
}

static bool tree_place(struct building *building, const struct view_entry *entry,
		       int tree, struct err *err)
{
	bool is_tree = entry->kind == VIEW_TREE;
	uint64_t set = MOUNT_ATTR_NOSUID | (is_tree ? MOUNT_ATTR_NODEV : MOUNT_ATTR_NOEXEC);
	struct stat st = {.st_mode = S_IFCHR};

	if (!entry->writable && is_tree)
		set |= MOUNT_ATTR_RDONLY;
	if (!attributes_set(tree, set, entry->path, err))
		return false;
	if (is_tree && fstat(tree, &st) < 0)
		return fail(err, "looking at", entry->source);
	return place_mount(building, tree, entry->path, S_ISDIR(st.st_mode), err);
}

static bool tree_add(struct building *building, const struct view_entry *entry,
		     struct err *err)
{
	auto_close int tree = -1;

	if (!source_open(entry, &tree, err))
		return entry->optional && err->code == ENOENT;
	return tree_place(building, entry, tree, err);
}

static bool memory_add(struct building *building, const struct view_entry *entry,
		       struct err *err)
{
	char size[32];

	(void)snprintf(size, sizeof(size), "%llu", (unsigned long long)entry->size);
	auto_close int tree =
		memory_new(size, entry->mode, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (tree < 0)
		return fail(err, "making memory for", entry->path);
	return place_mount(building, tree, entry->path, true, err);
}

/* A new file with TEXT in it, which nobody may write afterwards. */
static bool text_make(int folder, const char *name, const char *text, struct err *err)
{
	auto_close int fd =
		openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       OWN_FILE_MODE);

	if (fd < 0)
		return fail(err, "making", name);
	return fd_write_all(fd, text, strlen(text), err);
}

/* Bind our own file or folder NAME read-only over PATH. */
static bool bind_over(struct building *building, const char *name, const char *path,
		      bool is_folder, struct err *err)
{
	auto_close int tree =
		kernel_open_tree(building->own, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0)
		return fail(err, "opening", name);
	return attributes_set(tree,
			      MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
				      MOUNT_ATTR_NOEXEC,
			      path, err) &&
	       place_mount(building, tree, path, is_folder, err);
}

static bool mask_add(struct building *building, const struct view_entry *entry,
		     struct err *err)
{
	struct stat st;

	if (!folder_hold(building, entry->path, false) ||
	    fstatat(building->folder, path_base_name(entry->path), &st,
		    AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ||
		       fail(err, "masking", entry->path);
	if (S_ISLNK(st.st_mode))
		return true; /* what it leads to is masked under its own name */
	bool is_folder = S_ISDIR(st.st_mode);
	return bind_over(building, is_folder ? EMPTY_FOLDER : EMPTY_FILE, entry->path,
			 is_folder, err);
}

/* A text over an existing file of a read-only tree is a bind of one of our own files. */
static bool text_add(struct building *building, const struct view_entry *entry,
		     struct err *err)
{
	char own[32];

	if (!folder_hold(building, entry->path, true))
		return fail(err, "opening the folder of", entry->path);
	if (text_make(building->folder, path_base_name(entry->path), entry->source, err))
		return true;
	if (err->code != EEXIST && err->code != EROFS)
		return false;
	(void)snprintf(own, sizeof(own), "text%u", building->texts++);
	return text_make(building->own, own, entry->source, err) &&
	       bind_over(building, own, entry->path, false, err);
}

static bool link_add(struct building *building, const struct view_entry *entry,
		     struct err *err)
{
	if (!folder_hold(building, entry->path, true) ||
	    symlinkat(entry->source, building->folder, path_base_name(entry->path)) < 0)
		return fail(err, "linking", entry->path);
	return true;
}

static bool folder_add(struct building *building, const struct view_entry *entry,
		       struct err *err)
{
	if (!folder_hold(building, entry->path, true) ||
	    (mkdirat(building->folder, path_base_name(entry->path), entry->mode) < 0 &&
	     errno != EEXIST))
		return fail(err, "making", entry->path);
	return true;
}

static bool special_add(struct building *building, const struct view_entry *entry,
			const char *type, unsigned attributes, struct err *err)
{
	auto_close int context = (int)syscall(KERNEL_FSOPEN, type, FSOPEN_CLOEXEC);

	if (context < 0)
		return fail(err, "opening a private", type);
	if (entry->kind == VIEW_TERMINALS &&
	    (syscall(KERNEL_FSCONFIG, context, FSCONFIG_SET_STRING, "ptmxmode", "0666",
		     0) < 0 ||
	     syscall(KERNEL_FSCONFIG, context, FSCONFIG_SET_STRING, "mode", "0620", 0) < 0))
		return fail(err, "setting up", type);
	if (syscall(KERNEL_FSCONFIG, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return fail(err, "making a private", type);
	auto_close int tree =
		(int)syscall(KERNEL_FSMOUNT, context, FSMOUNT_CLOEXEC, attributes);
	if (tree < 0)
		return fail(err, "mounting a private", type);
	return place_mount(building, tree, entry->path, true, err);
}

/* What an upper layer's folder holds; also on the host, where one is kept. */
static const char *const layer_folders[] = {"upper", "work", "lower"};

/*
 * All three layers are named from the upper folder, which covers itself with the result: no
 * path of the user's is quoted in an option, and kernels that know no detached layers take
 * them. The merged folder shows the mode of its upper one. Volatile: the end of a cell would
 * else write out all that waits on the upper folder's disk, whoever's it is.
 */
static bool layers_mount(int upper, int lower, const struct stat *st, struct err *err)
{
	for (size_t i = 0; i < sizeof(layer_folders) / sizeof(layer_folders[0]); i++) {
		if (mkdirat(upper, layer_folders[i], 0700) < 0 && errno != EEXIST)
			return fail(err, "making a layer", layer_folders[i]);
	}
	auto_close int point =
		openat(upper, "lower", O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
	if (point < 0 || kernel_move_mount(lower, point) < 0)
		return fail(err, "mounting a layer", "lower");
	if (fchmodat(upper, "upper", st->st_mode & 01777, 0) < 0)
		return fail(err, "setting the mode of a layer", "upper");
	if (fchdir(upper) < 0 ||
	    mount("overlay", ".", "overlay", MS_NOSUID | MS_NODEV,
		  "lowerdir=lower,upperdir=upper,workdir=work,userxattr,volatile") < 0)
		return fail(err, "mounting layers over", "lower");
	return true;
}

static bool overlay_add(int root, const struct view_entry *entry, struct err *err)
{
	auto_close int lower = -1, upper = -1;
	struct stat st;
	bool ok;

	upper = target_open(root, entry->path, O_PATH | O_DIRECTORY);
	if (upper < 0)
		return fail(err, "opening", entry->path);
	ok = source_open(entry, &lower, err) &&
	     attributes_set(lower, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
			    entry->path, err) &&
	     (fstat(lower, &st) == 0 || fail(err, "looking at", entry->source)) &&
	     layers_mount(upper, lower, &st, err);
	if (ok)
		return true;
	if (entry->optional && fchdir(upper) == 0 && umount2(".", MNT_DETACH) == 0)
		return true;
	return err_while(err, "view: a layer over %s", entry->source);
}

static bool pin_add(int root, const struct view_entry *entry, struct err *err)
{
	auto_close int target = target_open(root, entry->path, O_PATH | O_NOFOLLOW);

	if (target < 0)
		return (entry->optional && errno == ENOENT) ||
		       fail(err, "pinning", entry->path);
	/* By what is held: another cell may put a link in the name's place meanwhile. */
	auto_close int tree = kernel_open_tree(target, "",
					       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
						       AT_RECURSIVE | AT_EMPTY_PATH);
	if (tree < 0)
		return fail(err, "opening", entry->path);
	if (!entry->writable && !attributes_set(tree, MOUNT_ATTR_RDONLY, entry->path, err))
		return false;
	return kernel_move_mount(tree, target) == 0 || fail(err, "pinning", entry->path);
}

static bool entry_add(struct building *building, const struct view_entry *entry,
		      struct err *err)
{
	switch (entry->kind) {
	case VIEW_TREE:
	case VIEW_DEVICE:
		return tree_add(building, entry, err);
	case VIEW_FOLDER:
		return folder_add(building, entry, err);
	case VIEW_MEMORY:
		return memory_add(building, entry, err);
	case VIEW_LINK:
		return link_add(building, entry, err);
	case VIEW_TEXT:
		return text_add(building, entry, err);
	case VIEW_TERMINALS:
		return special_add(building, entry, "devpts",
				   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
	case VIEW_PROCESSES:
		return special_add(building, entry, "proc",
				   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
				   err);
	case VIEW_MASK:
		return mask_add(building, entry, err);
	case VIEW_OVERLAY:
		return overlay_add(building->root, entry, err);
	case VIEW_PIN:
		return pin_add(building->root, entry, err);
	}
	return err_set(err, EINVAL, "view: entry %s has no kind", entry->path);
}

/* At one path: what is shown, what lies over it, what holds it, what hides it. */
static int entry_rank(const struct view_entry *entry)
{
	switch (entry->kind) {
	case VIEW_OVERLAY:
		return 1;
	case VIEW_PIN:
		return entry->writable ? 2 : 3;
	case VIEW_MASK:
		return 4;
	default:
		return 0;
	}
}

static int entry_compare(const void *left, const void *right)
{
	const struct view_entry *a = left;
	const struct view_entry *b = right;
	size_t depth_a = path_depth(a->path), depth_b = path_depth(b->path);

	if (depth_a != depth_b)
		return depth_a < depth_b ? -1 : 1;
	int order = strcmp(a->path, b->path);
	if (order != 0)
		return order;
	return entry_rank(a) - entry_rank(b);
}

static bool entries_add(int root, struct view *view, struct err *err)
{
	struct building building = {.root = root, .folder = -1};
	bool ok = true;

	qsort(view->entries, view->count, sizeof(view->entries[0]), entry_compare);
	building.own = folder_make(root, OWN_FOLDER);
	if (building.own < 0 || mkdirat(building.own, EMPTY_FOLDER, 0555) < 0 ||
	    mknodat(building.own, EMPTY_FILE, S_IFREG | OWN_FILE_MODE, 0) < 0)
		ok = fail(err, "making", OWN_FOLDER);
	for (size_t i = 0; ok && i < view->count; i++)
		ok = entry_add(&building, &view->entries[i], err);
	fd_close(&building.folder);
	fd_close(&building.own);
	return ok;
}

static bool view_build(struct view *view, struct err *err)
{
	(void)umask(0);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return fail(err, "making mounts private below", "/");
	auto_close int root = memory_new(ROOT_SIZE, ROOT_MODE, MOUNT_ATTR_NOSUID);
	if (root < 0)
		return fail(err, "making", "the new root");
	/* It has to hang somewhere to be pivoted into; /proc exists on every system. */
	auto_close int anywhere = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (anywhere < 0 || kernel_move_mount(root, anywhere) < 0)
		return fail(err, "hanging up", "the new root");
	if (!entries_add(root, view, err))
		return false;
	if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return fail(err, "changing to", "the new root");
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return fail(err, "letting go of", "the old root");
	struct mount_attr closed = {.attr_set = MOUNT_ATTR_RDONLY};
	if (syscall(KERNEL_MOUNT_SETATTR, AT_FDCWD, "/", 0, &closed, sizeof(closed)) < 0)
		return fail(err, "closing", "the new root");
	return true;
}

bool sandbox_build(enum sandbox_level level, struct view *view, int *rules, struct err *err)
{
	bool ok = true;

	*rules = -1;
	if (level >= SANDBOX_SEALED)
		ok = view_build(view, err);
	else if (level == SANDBOX_RULES)
		ok = rules_make(view, sandbox_landlock_abi(), rules, err);
	(void)umask(022);
	return ok;
}
