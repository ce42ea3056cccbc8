/*
 * view: builds the cell's file system. A tmpfs becomes the new root, host trees are
 * copied onto it as mounts of their own, and the old root is unmounted.
 */

#include "sandbox/view.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "base/path.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

/* Names of the sources of masks, in the folder `own`. */
#define VIEW_EMPTY_FILE   "nothing"
#define VIEW_EMPTY_FOLDER "nothing.d"

enum {
	VIEW_FOLDER_MODE = 0755,
	VIEW_FILE_MODE = 0444,
	VIEW_SCRIPT_MODE = 0555,
	VIEW_OWN_FILE_MODE = 0600,
};

/* Programs of the cell that wait for the front; further ones are refused by the kernel. */
enum { SOCKET_BACKLOG = 16 };

/*
 * The view under construction. Entries come shallow before deep and sorted by path, so
 * the entries of one folder follow each other, and no later entry covers a held folder.
 */
struct view_building {
	int root;
	int own;             /* folder of texts and of the sources of masks */
	unsigned texts;      /* number of texts in it */
	unsigned blocked;    /* number of sources for blocked files in it */
	struct buf late;     /* the end of the late texts */
	int folder;          /* where the last entry was placed; -1: nothing held yet */
	char held[PATH_MAX]; /* its path */
};

/*
 * Puts mounts into the view under construction. Every target is opened beneath the new
 * root, so no symlink in a tree can send a mount elsewhere.
 */

/* Set ERR from errno, with STEP and PATH in its text. Returns false. */
static bool view_fail(struct err *err, const char *step, const char *path)
{
	int code = errno;

	return err_set(err, code, "view: %s %s: %s", step, path, strerror(code));
}

static bool set_option(int context, const char *key, const char *text)
{
	return syscall(KERNEL_FSCONFIG, context, FSCONFIG_SET_STRING, key, text, 0) == 0;
}

/*
 * Make a detached tmpfs of SIZE bytes with room for FILES names. FILES is limited
 * because the kernel does not count the memory of a name; 0: no limit.
 */
static int view_new_memory(uint64_t size, uint64_t files, mode_t mode, unsigned attributes)
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

/* Open PATH of the view; a link anywhere in PATH is an error. */
static int view_open(int root, const char *path, int flags)
{
	const struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS,
	};

	return (int)syscall(SYS_openat2, root, path[1] != '\0' ? path + 1 : ".", &how,
			    sizeof(how));
}

/* Make PATH a directory of the view, with its parents, and open it. */
static int view_make_folder(int root, const char *path)
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

/* Hold the folder that contains PATH open. MAKE: create the missing parts of it. */
static bool view_hold_folder(struct view_building *building, const char *path, bool make)
{
	size_t size = (size_t)(path_base_name(path) - path);

	size -= size > 1; /* leave out the slash, except that of the root */
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

/*
 * Mount MOUNT_FD at PATH. The mount point is a directory, or an empty file for anything
 * else. An existing file is left as it is; an existing link is not followed.
 */
static bool view_place(struct view_building *building, int mount_fd, const char *path,
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

/* SET: MOUNT_ATTR_… flags that are set on TREE and on all mounts below it. */
static bool view_set_attributes(int tree, uint64_t set, const char *path, struct err *err)
{
	struct mount_attr attributes = {.attr_set = set};

	if (syscall(KERNEL_MOUNT_SETATTR, tree, "", AT_EMPTY_PATH | AT_RECURSIVE,
		    &attributes, sizeof(attributes)) < 0)
		return view_fail(err, "setting the mount attributes of", path);
	return true;
}

/* Shows each kind of entry: trees of the host, memory, texts, masks, layers. */

/*
 * The kernel does not count the memory of a name. So allow one name for each page, and
 * some names in a small memory.
 */
enum { FILE_ROOM = 4 << 10, FILES_MIN = 1 << 10 };

enum { COPY_BYTES = 64 << 10 }; /* of one read of a copied file */

enum { LATE_MAX = 1 << 20 }; /* the end of the late texts, at most */

/*
 * Copy the tree at SOURCE. It must be the one that was held before, because somebody
 * may have swapped the name.
 */
static bool source_open(const struct view_entry *entry, int *tree, struct err *err)
{
	struct stat held, found;

	if (entry->detached) {
		*tree = fcntl(entry->fd, F_DUPFD_CLOEXEC, 0);
		return *tree >= 0 || view_fail(err, "holding", entry->source);
	}
	auto_close int fd =
		kernel_open_tree(AT_FDCWD, entry->source,
				 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (fd < 0)
		return view_fail(err, "opening", entry->source);
	if (entry->fd >= 0 && (fstat(entry->fd, &held) < 0 || fstat(fd, &found) < 0 ||
			       held.st_dev != found.st_dev || held.st_ino != found.st_ino))
		return err_set(err, ESTALE, "view: %s was replaced while the cell was built",
			       entry->source);
	*tree = fd_take(&fd);
	return true;
}

static bool tree_place(struct view_building *building, const struct view_entry *entry,
		       int tree, struct err *err)
{
	bool is_tree = entry->kind == VIEW_TREE;
	uint64_t set = MOUNT_ATTR_NOSUID | (is_tree ? MOUNT_ATTR_NODEV : MOUNT_ATTR_NOEXEC);
	struct stat st = {.st_mode = S_IFCHR};

	if (!entry->writable && is_tree)
		set |= MOUNT_ATTR_RDONLY;
	if (!view_set_attributes(tree, set, entry->path, err))
		return false;
	if (is_tree && fstat(tree, &st) < 0)
		return view_fail(err, "looking at", entry->source);
	return view_place(building, tree, entry->path, S_ISDIR(st.st_mode), err);
}

static bool tree_add(struct view_building *building, const struct view_entry *entry,
		     struct err *err)
{
	auto_close int tree = -1;

	if (!source_open(entry, &tree, err))
		return entry->optional && err->code == ENOENT;
	return tree_place(building, entry, tree, err);
}

/* Make the memory of ENTRY, without set-id bits and with ATTRIBUTES. */
static int new_memory_of(const struct view_entry *entry, unsigned attributes)
{
	const uint64_t files = entry->size / FILE_ROOM;

	return view_new_memory(entry->size, files > FILES_MIN ? files : FILES_MIN,
			       entry->mode, MOUNT_ATTR_NOSUID | attributes);
}

static bool memory_add(struct view_building *building, const struct view_entry *entry,
		       struct err *err)
{
	auto_close int tree = new_memory_of(entry, MOUNT_ATTR_NODEV);
	if (tree < 0)
		return view_fail(err, "making memory for", entry->path);
	return view_place(building, tree, entry->path, true, err);
}

/* Append the file BEFORE of the host to FD, whose text then begins a line. */
static bool before_add(int fd, const char *before, struct err *err)
{
	char bytes[COPY_BYTES], last = '\n';
	struct stat st;

	/* Do not block: a FIFO in place of the file must cause an error, not a wait. */
	auto_close int from = open(before, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (from < 0 && (errno == ENOENT || errno == ENOTDIR))
		return true;
	if (from < 0 || fstat(from, &st) < 0)
		return view_fail(err, "reading", before);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "view: %s is no regular file", before);
	for (;;) {
		const ssize_t n = read(from, bytes, sizeof(bytes));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return view_fail(err, "reading", before);
		if (n == 0)
			return last == '\n' || fd_write_all(fd, "\n", 1, err);
		if (!fd_write_all(fd, bytes, (size_t)n, err))
			return err_while(err, "view: a copy of %s", before);
		last = bytes[n - 1];
	}
}

/* Make a new file with the content of ENTRY. */
static bool text_make(const struct view_building *building, int folder, const char *name,
		      const struct view_entry *entry, struct err *err)
{
	const struct str end =
		entry->late ? buf_str(&building->late) : str_of(entry->source);
	auto_close int fd =
		openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       entry->writable ? VIEW_OWN_FILE_MODE
		       : entry->runs   ? VIEW_SCRIPT_MODE
				       : VIEW_FILE_MODE);

	if (fd < 0)
		return view_fail(err, "making", name);
	return (entry->before == NULL || before_add(fd, entry->before, err)) &&
	       fd_write_all(fd, end.data, end.size, err);
}

/* Bind our own file or folder NAME over PATH, read-only unless WRITABLE. */
static bool bind_over(struct view_building *building, const char *name, const char *path,
		      bool is_folder, bool writable, struct err *err)
{
	const uint64_t read_only = writable ? 0 : MOUNT_ATTR_RDONLY;
	auto_close int tree =
		kernel_open_tree(building->own, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0)
		return view_fail(err, "opening", name);
	return view_set_attributes(tree,
				   read_only | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					   MOUNT_ATTR_NOEXEC,
				   path, err) &&
	       view_place(building, tree, path, is_folder, err);
}

static bool mask_add(struct view_building *building, const struct view_entry *entry,
		     struct err *err)
{
	struct stat st;

	if (!view_hold_folder(building, entry->path, false) ||
	    fstatat(building->folder, path_base_name(entry->path), &st,
		    AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ||
		       view_fail(err, "masking", entry->path);
	if (S_ISLNK(st.st_mode))
		return true; /* the target of the link is masked under its own name */
	bool is_folder = S_ISDIR(st.st_mode);
	char own[32] = VIEW_EMPTY_FILE;
	if (!is_folder && entry->apart) {
		(void)snprintf(own, sizeof(own), VIEW_EMPTY_FILE ".%u", ++building->blocked);
		if (mknodat(building->own, own, S_IFREG | VIEW_FILE_MODE, 0) < 0)
			return view_fail(err, "making", own);
	}
	return bind_over(building, is_folder ? VIEW_EMPTY_FOLDER : own, entry->path,
			 is_folder, false, err);
}

/*
 * Over an existing file of a read-only tree, the text is a bind mount of one of our own
 * files.
 */
static bool text_add(struct view_building *building, const struct view_entry *entry,
		     struct err *err)
{
	char own[32];

	if (!view_hold_folder(building, entry->path, true))
		return view_fail(err, "opening the folder of", entry->path);
	if (!entry->writable) {
		if (text_make(building, building->folder, path_base_name(entry->path),
			      entry, err))
			return true;
		if (err->code != EEXIST && err->code != EROFS)
			return false;
	}
	(void)snprintf(own, sizeof(own), "text%u", building->texts++);
	return text_make(building, building->own, own, entry, err) &&
	       bind_over(building, own, entry->path, false, entry->writable, err);
}

static bool socket_add(struct view_building *building, struct view_entry *entry,
		       struct err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *name = path_base_name(entry->path);
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (!view_hold_folder(building, entry->path, true))
		return view_fail(err, "opening the folder of", entry->path);
	if (strlen(name) >= sizeof(address.sun_path))
		return err_set(err, ENAMETOOLONG, "view: %s: the name is too long",
			       entry->path);
	memcpy(address.sun_path, name, strlen(name));
	/* bind(2) takes no folder: the name is relative to the current one. */
	if (fd < 0 || fchdir(building->folder) < 0 ||
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, SOCKET_BACKLOG) < 0)
		return view_fail(err, "listening at", entry->path);
	entry->fd = fd_take(&fd);
	return true;
}

static bool link_add(struct view_building *building, const struct view_entry *entry,
		     struct err *err)
{
	if (!view_hold_folder(building, entry->path, true) ||
	    symlinkat(entry->source, building->folder, path_base_name(entry->path)) < 0)
		return view_fail(err, "linking", entry->path);
	return true;
}

static bool folder_add(struct view_building *building, const struct view_entry *entry,
		       struct err *err)
{
	if (!view_hold_folder(building, entry->path, true) ||
	    (mkdirat(building->folder, path_base_name(entry->path), entry->mode) < 0 &&
	     errno != EEXIST))
		return view_fail(err, "making", entry->path);
	return true;
}

static bool special_add(struct view_building *building, const struct view_entry *entry,
			const char *type, unsigned attributes, struct err *err)
{
	auto_close int context = (int)syscall(KERNEL_FSOPEN, type, FSOPEN_CLOEXEC);

	if (context < 0)
		return view_fail(err, "opening a private", type);
	if (entry->kind == VIEW_TERMINALS &&
	    (syscall(KERNEL_FSCONFIG, context, FSCONFIG_SET_STRING, "ptmxmode", "0666",
		     0) < 0 ||
	     syscall(KERNEL_FSCONFIG, context, FSCONFIG_SET_STRING, "mode", "0620", 0) < 0))
		return view_fail(err, "setting up", type);
	if (syscall(KERNEL_FSCONFIG, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return view_fail(err, "making a private", type);
	auto_close int tree =
		(int)syscall(KERNEL_FSMOUNT, context, FSMOUNT_CLOEXEC, attributes);
	if (tree < 0)
		return view_fail(err, "mounting a private", type);
	return view_place(building, tree, entry->path, true, err);
}

/*
 * The folders inside an upper layer, also in one that is kept on the host
 * (view/home.c). The kernel makes its `work` in `scratch`.
 */
static const char *const layer_folders[] = {VIEW_LAYER_UPPER, "scratch", VIEW_LAYER_LOWER};

/* Show the copy in the folder UPPER in place of that folder. */
static bool copy_mount(int upper, struct err *err)
{
	auto_close int copy = openat(upper, VIEW_LAYER_UPPER,
				     O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
	auto_close int tree =
		copy < 0 ? -1
			 : kernel_open_tree(copy, "",
					    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
						    AT_EMPTY_PATH);

	return (tree >= 0 && kernel_move_mount(tree, upper) == 0) ||
	       view_fail(err, "showing a copy", VIEW_LAYER_UPPER);
}

enum { LOWERS_ROOM = 16 * (VIEW_LOWERS_MAX + 1), OPTIONS_ROOM = LOWERS_ROOM + 128 };

/* The options that a volatile overlay of ours has beside its folders. */
#define UPPER_OPTIONS "upperdir=" VIEW_LAYER_UPPER ",workdir=scratch,userxattr,volatile"
/*
 * A folder below is the upper one of another mounted overlay, whose writer is at rest: with its
 * index the kernel would refuse that.
 */
#define STACK_OPTIONS "userxattr,index=off"

static bool layer_make(int upper, const char *name, struct err *err)
{
	return mkdirat(upper, name, 0700) == 0 || errno == EEXIST ||
	       view_fail(err, "making a layer", name);
}

/* Hang the tree LOWER into the folder NAME of the layer UPPER. */
static bool lower_hang(int upper, const char *name, int lower, struct err *err)
{
	auto_close int point =
		layer_make(upper, name, err)
			? openat(upper, name, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC)
			: -1;

	return point >= 0 && kernel_move_mount(lower, point) == 0
		       ? true
		       : view_fail(err, "mounting a layer", name);
}

/* Mount an overlay at POINT in the folder UPPER, which is the current one. */
static bool overlay_mount(const char *point, unsigned long flags, const char *options,
			  struct err *err)
{
	return mount("overlay", point, "overlay", MS_NOSUID | MS_NODEV | flags, options) ==
		       0 ||
	       view_fail(err, "mounting layers over", point);
}

/*
 * Mount the overlay ENTRY, which has lowers, over its own upper folder UPPER. One mount names all
 * of them, because the kernel mounts an overlay over an overlay over another one at most.
 */
static bool stack_mount(int upper, const struct view_entry *entry, struct err *err)
{
	char lowers[LOWERS_ROOM] = "", options[OPTIONS_ROOM];
	size_t size = 0;

	for (unsigned i = 0; i <= entry->number; i++)
		size += (size_t)snprintf(lowers + size, sizeof(lowers) - size,
					 "%s" VIEW_LAYER_BELOW "%u", i > 0 ? ":" : "", i);
	(void)snprintf(options, sizeof(options), "lowerdir=%s," STACK_OPTIONS, lowers);
	if (fchdir(upper) < 0)
		return view_fail(err, "entering a layer", entry->path);
	if (entry->lasts == VIEW_LASTS_NOTHING)
		return overlay_mount(".", MS_RDONLY, options, err);
	if (!overlay_mount(VIEW_LAYER_LOWER, MS_RDONLY, options, err))
		return false;
	(void)snprintf(options, sizeof(options),
		       "lowerdir=%s," UPPER_OPTIONS ",index=off", lowers);
	return overlay_mount(".", 0, options, err);
}

/*
 * Mount the overlay ENTRY over the tree LOWER and over its own upper folder UPPER. All layers are
 * named relative to that folder, so no path of the user has to be quoted in an option, and
 * kernels that do not know detached layers accept them. The merged folder shows the mode of the
 * upper one, which is that of the highest folder below. The overlay is volatile; otherwise the
 * end of a cell would write out all unwritten data of the disk of the upper folder, including
 * that of other programs.
 */
static bool layers_mount(int upper, const struct view_entry *entry, int lower,
			 struct err *err)
{
	char base[sizeof(VIEW_LAYER_BELOW) + 16] = VIEW_LAYER_LOWER;
	struct stat st;

	if (entry->number > 0)
		(void)snprintf(base, sizeof(base), VIEW_LAYER_BELOW "%u", entry->number);
	for (size_t i = 0; i < sizeof(layer_folders) / sizeof(layer_folders[0]); i++) {
		if (!layer_make(upper, layer_folders[i], err))
			return false;
	}
	if (!lower_hang(upper, base, lower, err))
		return false;
	if (entry->copied)
		return copy_mount(upper, err);
	if (fstatat(upper, entry->number > 0 ? VIEW_LAYER_BELOW "0" : base, &st,
		    AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchmodat(upper, VIEW_LAYER_UPPER, st.st_mode & 01777, 0) < 0)
		return view_fail(err, "setting the mode of a layer", "upper");
	if (entry->number > 0)
		return stack_mount(upper, entry, err);
	if (fchdir(upper) < 0)
		return view_fail(err, "entering a layer", entry->path);
	return overlay_mount(".", 0, "lowerdir=" VIEW_LAYER_LOWER "," UPPER_OPTIONS, err);
}

/* Open the source of ENTRY, a folder below an overlay. */
static bool lower_open(const struct view_entry *entry, int *lower, struct err *err)
{
	return source_open(entry, lower, err) &&
	       view_set_attributes(*lower,
				   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
				   entry->path, err);
}

static bool lower_add(int root, const struct view_entry *entry, struct err *err)
{
	auto_close int upper = view_open(root, entry->path, O_PATH | O_DIRECTORY);
	auto_close int lower = -1;
	char name[sizeof(VIEW_LAYER_BELOW) + 16];

	(void)snprintf(name, sizeof(name), VIEW_LAYER_BELOW "%u", entry->number);
	return upper < 0 ? view_fail(err, "opening", entry->path)
			 : lower_open(entry, &lower, err) &&
				   lower_hang(upper, name, lower, err);
}

static bool overlay_add(int root, struct view_entry *entry, struct err *err)
{
	auto_close int lower = -1, upper = -1;
	bool ok;

	upper = view_open(root, entry->path, O_PATH | O_DIRECTORY);
	if (upper < 0)
		return view_fail(err, "opening", entry->path);
	ok = lower_open(entry, &lower, err) && layers_mount(upper, entry, lower, err);
	if (ok && entry->lasts != VIEW_LASTS_PROJECT)
		entry->layer = fd_take(&upper);
	if (ok)
		return true;
	if (entry->optional && fchdir(upper) == 0 && umount2(".", MNT_DETACH) == 0)
		return true;
	return err_while(err, "view: a layer over %s", entry->source);
}

static bool pin_add(int root, const struct view_entry *entry, struct err *err)
{
	auto_close int target = view_open(root, entry->path, O_PATH | O_NOFOLLOW);

	if (target < 0)
		return (entry->optional && errno == ENOENT) ||
		       view_fail(err, "pinning", entry->path);
	/* Use the descriptor: another cell may replace the name by a link meanwhile. */
	auto_close int tree = kernel_open_tree(target, "",
					       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
						       AT_RECURSIVE | AT_EMPTY_PATH);
	if (tree < 0)
		return view_fail(err, "opening", entry->path);
	if (!entry->writable &&
	    !view_set_attributes(tree, MOUNT_ATTR_RDONLY, entry->path, err))
		return false;
	return kernel_move_mount(tree, target) == 0 ||
	       view_fail(err, "pinning", entry->path);
}

/*
 * The mounts in the folder are copied with it, so each wall in it stands here too. A folder that is
 * no mount is one of the root's, in which a cell without a base writes nothing.
 */
static bool also_add(struct view_building *building, const struct view_entry *entry,
		     bool has_base, struct err *err)
{
	struct mount_attr closed = {.attr_set = MOUNT_ATTR_RDONLY};
	auto_close int folder =
		view_open(building->root, entry->source, O_PATH | O_DIRECTORY);
	auto_close int tree =
		folder < 0 ? -1
			   : kernel_open_tree(folder, "",
					      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
						      AT_RECURSIVE | AT_EMPTY_PATH);
	struct statx about;

	if (tree < 0 || statx(folder, "", AT_EMPTY_PATH, STATX_TYPE, &about) < 0)
		return view_fail(err, "opening", entry->source);
	if (!has_base && (about.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0 &&
	    syscall(KERNEL_MOUNT_SETATTR, tree, "", AT_EMPTY_PATH, &closed,
		    sizeof(closed)) < 0)
		return view_fail(err, "closing", entry->path);
	return view_place(building, tree, entry->path, true, err);
}

/* Is ENTRY a folder of the base? */
static bool is_of_base(const struct view_entry *entry)
{
	return entry->kind == VIEW_LOWER && entry->path[1] == '\0';
}

/* Show ENTRY. The entries before it in the order of sandbox_build are already shown. */
static bool view_add(struct view_building *building, struct view_entry *entry,
		     struct err *err)
{
	if (entry->waits) {
		auto_close int place = view_make_folder(building->root, entry->path);
		return place >= 0 || view_fail(err, "making", entry->path);
	}
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
	case VIEW_LOWER:
		return is_of_base(entry) || lower_add(building->root, entry, err);
	case VIEW_OVERLAY:
		return overlay_add(building->root, entry, err);
	case VIEW_PIN:
		return pin_add(building->root, entry, err);
	case VIEW_SOCKET:
		return socket_add(building, entry, err);
	case VIEW_BASE:
		return true; /* it is there already */
	case VIEW_ALSO:
		return true; /* it comes behind all others */
	}
	return err_set(err, EINVAL, "view: entry %s has no kind", entry->path);
}

/*
 * The root holds mount points, a few small files, and copies of the system's bundle of
 * certificates, which are a quarter of a MiB each; never data.
 */
enum { ROOT_SIZE = 16 << 20 };

/* The folder of texts and of the sources of masks in the view. */
#define OWN_FOLDER "/run/glovebox"

/* The rank of an entry among those at one path: content, what is below it, overlay, pins, mask. */
static int entry_rank(const struct view_entry *entry)
{
	switch (entry->kind) {
	case VIEW_LOWER:
		return 1;
	case VIEW_OVERLAY:
		return 2;
	case VIEW_PIN:
		return entry->writable ? 3 : 4;
	case VIEW_MASK:
		return 5;
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

/*
 * Lays a base below the view. The folders of the base are lower layers of one overlay, whose
 * upper folder is memory. Nothing of the base is followed by its name: see VIEW_BASE.
 */

static struct view_entry *base_of(const struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		if (view->entries[i].kind == VIEW_BASE)
			return &view->entries[i];
	}
	return NULL;
}

/* Does ENTRY lie in something that another entry mounts? */
static bool is_covered(const struct view *view, const struct view_entry *entry)
{
	if (path_within(entry->path, OWN_FOLDER))
		return true;
	for (size_t i = 0; i < view->count; i++) {
		const struct view_entry *other = &view->entries[i];

		if ((other->kind == VIEW_TREE || other->kind == VIEW_MEMORY ||
		     other->kind == VIEW_PROCESSES || other->kind == VIEW_OVERLAY) &&
		    path_within(entry->path, other->path) &&
		    strcmp(entry->path, other->path) != 0)
			return true;
	}
	return false;
}

/* Is ENTRY whole in our own folder of the overlay, so that nothing has to be mounted? */
static bool is_point(const struct view *view, const struct view_entry *entry)
{
	return (entry->kind == VIEW_LINK || entry->kind == VIEW_FOLDER ||
		(entry->kind == VIEW_TEXT && !entry->late && !entry->writable)) &&
	       !is_covered(view, entry);
}

/* Make what ENTRY, a tree or device, is mounted on. A source that is missing is told later. */
static bool point_of_tree(struct view_building *building, const struct view_entry *entry,
			  struct err *err)
{
	const char *name = path_base_name(entry->path);
	struct stat st;

	if ((entry->fd >= 0 ? fstat(entry->fd, &st) : stat(entry->source, &st)) < 0)
		return true;
	if (!view_hold_folder(building, entry->path, true) ||
	    (S_ISDIR(st.st_mode)
		     ? mkdirat(building->folder, name, VIEW_FOLDER_MODE)
		     : mknodat(building->folder, name, S_IFREG | VIEW_FILE_MODE, 0)) < 0)
		return errno == EEXIST || view_fail(err, "making", entry->path);
	return true;
}

/* Make the place of ENTRY, or ENTRY itself, in our own folder of the overlay. */
static bool point_add(struct view_building *building, const struct view *view,
		      struct view_entry *entry, struct err *err)
{
	if (is_covered(view, entry))
		return true;
	switch (entry->kind) {
	case VIEW_TREE:
	case VIEW_DEVICE:
		return point_of_tree(building, entry, err);
	case VIEW_MEMORY:
	case VIEW_TERMINALS:
	case VIEW_PROCESSES:
	case VIEW_ALSO: {
		auto_close int made = view_make_folder(building->root, entry->path);
		return made >= 0 || view_fail(err, "making", entry->path);
	}
	case VIEW_TEXT:
	case VIEW_FOLDER:
	case VIEW_LINK:
		return is_point(view, entry)
			       ? view_add(building, entry, err)
			       : view_hold_folder(building, entry->path, true) ||
					 view_fail(err, "making the folder of", entry->path);
	case VIEW_MASK:
	case VIEW_LOWER:
	case VIEW_OVERLAY:
	case VIEW_PIN:
	case VIEW_SOCKET:
	case VIEW_BASE:
		break;
	}
	return true;
}

/* Fill POINTS, our own folder, which is the highest of the overlay. */
static bool points_fill(int points, struct view *view, struct err *err)
{
	struct view_building building = {.root = points, .own = -1, .folder = -1};
	auto_close int own = view_make_folder(points, OWN_FOLDER);
	bool ok = own >= 0 || view_fail(err, "making", OWN_FOLDER);

	for (size_t i = 0; ok && i < view->count; i++)
		ok = point_add(&building, view, &view->entries[i], err);
	fd_close(&building.folder);
	return ok;
}

/* Hang the folders of the base into the folder STAGE, behind our own one. */
static bool base_hang(int stage, const struct view *view, struct err *err)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct view_entry *entry = &view->entries[i];
		char name[sizeof(VIEW_LAYER_BELOW) + 16];
		auto_close int lower = -1;

		if (!is_of_base(entry))
			continue;
		(void)snprintf(name, sizeof(name), VIEW_LAYER_BELOW "%u", entry->number + 1);
		if (!lower_open(entry, &lower, err) || !lower_hang(stage, name, lower, err))
			return err_while(err, "the base: %s", entry->source);
	}
	return true;
}

/*
 * Lay the overlay of BASE over STAGE, which is mounted at /proc, and open it as ROOT. The
 * overlay keeps copies of its folders, so all else of the stage goes with the old root.
 */
static bool base_lay(const struct view_entry *base, struct view *view, int stage,
		     int *root, struct err *err)
{
	char options[OPTIONS_ROOM];
	size_t size;

	if (!layer_make(stage, VIEW_LAYER_UPPER, err) || !layer_make(stage, "scratch", err) ||
	    !layer_make(stage, VIEW_LAYER_BELOW "0", err) ||
	    fchmodat(stage, VIEW_LAYER_UPPER, VIEW_FOLDER_MODE, 0) < 0 ||
	    fchmodat(stage, VIEW_LAYER_BELOW "0", VIEW_FOLDER_MODE, 0) < 0)
		return view_fail(err, "making", "the layer of the base");
	auto_close int points =
		openat(stage, VIEW_LAYER_BELOW "0", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (points < 0 || !points_fill(points, view, err) || !base_hang(stage, view, err))
		return points < 0 ? view_fail(err, "opening", "the layer of the base")
				  : false;
	size = (size_t)snprintf(options, sizeof(options), UPPER_OPTIONS ",lowerdir=");
	for (unsigned i = 0; i <= base->number; i++)
		size += (size_t)snprintf(options + size, sizeof(options) - size,
					 "%s" VIEW_LAYER_BELOW "%u", i > 0 ? ":" : "", i);
	if (fchdir(stage) < 0)
		return view_fail(err, "entering", "the layer of the base");
	if (mount("overlay", ".", "overlay", MS_NOSUID | MS_NODEV, options) < 0)
		return err_set(err, errno,
			       "the base: the kernel lays no overlay over its folders (%s): see "
			       "`glovebox base doctor`",
			       strerror(errno));
	*root = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return *root >= 0 || view_fail(err, "opening", "the base");
}

/*
 * Add the late texts. Nothing lies below a text, so it may come after all other entries. An
 * end without a byte means that its writer has failed.
 */
static bool late_add(struct view_building *building, struct view *view, struct err *err)
{
	bool ok, has_late = false;

	for (size_t i = 0; !has_late && i < view->count; i++)
		has_late = view->entries[i].late;
	if (!has_late)
		return true;
	buf_init(&building->late, LATE_MAX);
	ok = fd_read_all(view->late, &building->late, "a late text of the view", err) &&
	     (building->late.size > 0 ||
	      err_set(err, ENODATA, "view: no late text has come"));
	for (size_t i = 0; ok && i < view->count; i++)
		ok = !view->entries[i].late || view_add(building, &view->entries[i], err);
	buf_fini(&building->late);
	return ok;
}

/* Open the folder of texts and of the sources of masks; with a base it is a mount of its own. */
static bool own_open(struct view_building *building, bool has_base, struct err *err)
{
	if (has_base) {
		auto_close int tree = view_new_memory(ROOT_SIZE, 0, VIEW_FOLDER_MODE,
						      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
		if (tree < 0 || !view_place(building, tree, OWN_FOLDER, true, err))
			return view_fail(err, "making", OWN_FOLDER);
		fd_close(&building->folder);
		building->own = view_open(building->root, OWN_FOLDER, O_PATH | O_DIRECTORY);
	} else {
		building->own = view_make_folder(building->root, OWN_FOLDER);
	}
	return (building->own >= 0 && mkdirat(building->own, VIEW_EMPTY_FOLDER, 0555) == 0 &&
		mknodat(building->own, VIEW_EMPTY_FILE, S_IFREG | VIEW_FILE_MODE, 0) == 0) ||
	       view_fail(err, "making", OWN_FOLDER);
}

/* Nobody adds names to our own folders: on a base the folders around them can be written. */
static bool own_close(int root, struct err *err)
{
	static const char *const folders[] = {OWN_FOLDER, "/dev"};
	struct mount_attr closed = {.attr_set = MOUNT_ATTR_RDONLY};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		auto_close int folder = view_open(root, folders[i], O_PATH | O_DIRECTORY);

		if (folder < 0 || syscall(KERNEL_MOUNT_SETATTR, folder, "", AT_EMPTY_PATH,
					  &closed, sizeof(closed)) < 0)
			return view_fail(err, "closing", folders[i]);
	}
	return true;
}

/*
 * Holds the folders above a mount where programs may write. There they could move such a folder
 * away with all that is mounted in it and make another one in its place, and who finds the mount
 * by its path, as the audit does, would find what they made. The kernel neither moves nor removes
 * what is a mount itself, so each of these folders is mounted over itself, and everything beside
 * the mounts may be written as before. The kernel renames no file into another mount.
 */

/* Is there an overlay of VIEW at PATH that takes additions to a cache? Nobody relies on its path. */
static bool is_cache(const struct view *view, const char *path)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct view_entry *entry = &view->entries[i];

		if (entry->kind == VIEW_OVERLAY && entry->lasts == VIEW_LASTS_PROJECT &&
		    strcmp(entry->path, path) == 0)
			return true;
	}
	return false;
}

/* Does ENTRY show something of the host at its own path, or the workspace, by which it is found? */
static bool has_to_stay(const struct view *view, const struct view_entry *entry)
{
	struct stat st;

	switch (entry->kind) {
	case VIEW_TREE:
	case VIEW_OVERLAY:
		return strcmp(entry->path, entry->source) == 0 &&
		       !is_cache(view, entry->path) &&
		       (!entry->optional || entry->fd >= 0 || stat(entry->source, &st) == 0);
	case VIEW_MEMORY: /* what takes the writes of an overlay comes before it */
		return !is_cache(view, entry->path);
	case VIEW_FOLDER:
	case VIEW_ALSO:
		return true;
	default:
		return false;
	}
}

/* The deepest entry of VIEW that mounts what PATH lies in, if it is deeper than FOUND. */
static const struct view_entry *place_of(const struct view *view, const char *path,
					 const struct view_entry *found)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct view_entry *entry = &view->entries[i];

		if ((entry->kind == VIEW_TREE || entry->kind == VIEW_MEMORY ||
		     entry->kind == VIEW_PROCESSES || entry->kind == VIEW_OVERLAY ||
		     entry->kind == VIEW_BASE) &&
		    path_within(path, entry->path) && strcmp(path, entry->path) != 0 &&
		    (found == NULL || strlen(entry->path) >= strlen(found->path)))
			found = entry;
	}
	return found;
}

/* May programs move the folders that are made for mounts in PLACE, once the cell runs? */
static bool is_loose(const struct view_entry *place, bool widens)
{
	if (place == NULL)
		return false; /* the root, which is closed */
	if (place->kind == VIEW_BASE)
		return widens; /* see VIEW_BASE */
	return place->kind == VIEW_MEMORY || (place->kind == VIEW_TREE && place->writable &&
					      strcmp(place->path, place->source) != 0);
}

/* Is the folder PATH of the view a mount? */
static bool is_mount(int root, const char *path, bool *is, struct err *err)
{
	auto_close int folder = view_open(root, path, O_PATH | O_DIRECTORY);
	struct statx about;

	if (folder < 0 || statx(folder, "", AT_EMPTY_PATH, STATX_TYPE, &about) < 0)
		return view_fail(err, "looking at", path);
	*is = (about.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
	return true;
}

/* Mount the folder PATH of the view over itself, unless it is a mount. It is made if need be. */
static bool folder_hold(struct view_building *building, const char *path, struct err *err)
{
	const struct view_entry pin = {.kind = VIEW_PIN, .path = path, .writable = true};
	auto_close int made = view_make_folder(building->root, path);
	bool is = false;

	if (made < 0)
		return view_fail(err, "making", path);
	if (!is_mount(building->root, path, &is, err) || is)
		return is;
	fd_close(&building->folder); /* it may be what is covered now */
	/* While a view is widened, programs run, and may move the folder until it is held. */
	return pin_add(building->root, &pin, err) &&
	       is_mount(building->root, path, &is, err) &&
	       (is || err_set(err, ESTALE, "view: %s was moved while it was mounted", path));
}

/* Hold the folders between ENTRY, of VIEW, and what it lies in. WHOLE: what was shown before. */
static bool above_hold(struct view_building *building, const struct view *view,
		       const struct view *whole, const struct view_entry *entry,
		       struct err *err)
{
	const struct view_entry *place = place_of(view, entry->path, NULL);
	char path[PATH_MAX];

	if (whole != NULL)
		place = place_of(whole, entry->path, place);
	if (!is_loose(place, whole != NULL) || !has_to_stay(view, entry))
		return true;
	if (strlen(entry->path) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return view_fail(err, "holding", entry->path);
	}
	const char *at = entry->path + (place->path[1] != '\0' ? strlen(place->path) : 0);
	while ((at = strchr(at + 1, '/')) != NULL) {
		memcpy(path, entry->path, (size_t)(at - entry->path));
		path[at - entry->path] = '\0';
		if (!folder_hold(building, path, err))
			return false;
	}
	return entry->kind != VIEW_FOLDER || folder_hold(building, entry->path, err);
}

/*
 * Show the entries VIEW_ALSO of WHOLE. With ADDED, the view is widened: the trees of ADDED that lie
 * in such a folder are shown there, too.
 */
static bool also_add_all(struct view_building *building, const struct view *whole,
			 const struct view *added, struct err *err)
{
	const bool has_base = base_of(whole) != NULL;
	bool ok = true;

	fd_close(&building->folder); /* a pin may cover it */
	for (size_t i = 0; ok && i < whole->count; i++) {
		const struct view_entry *also = &whole->entries[i];

		if (also->kind != VIEW_ALSO)
			continue;
		if (added == NULL)
			ok = above_hold(building, whole, NULL, also, err) &&
			     also_add(building, also, has_base, err);
		for (size_t j = 0; ok && added != NULL && j < added->count; j++) {
			const struct view_entry *tree = &added->entries[j];
			struct buf path;

			buf_init(&path, PATH_MAX);
			(void)buf_adds(&path, tree->path);
			if (tree->kind == VIEW_TREE &&
			    path_move(&path, also->source, also->path)) {
				const struct view_entry copy = {.kind = VIEW_ALSO,
								.path = path.data,
								.source = tree->path};
				ok = also_add(building, &copy, has_base, err);
			}
			buf_fini(&path);
		}
	}
	return ok;
}

/* Show all entries of VIEW, which are in order. */
static bool entries_add(int root, struct view *view, struct err *err)
{
	struct view_building building = {.root = root, .own = -1, .folder = -1};
	const bool has_base = base_of(view) != NULL;
	bool ok = own_open(&building, has_base, err);

	for (size_t i = 0; ok && i < view->count; i++)
		ok = view->entries[i].late ||
		     (has_base && is_point(view, &view->entries[i])) ||
		     (above_hold(&building, view, NULL, &view->entries[i], err) &&
		      view_add(&building, &view->entries[i], err));
	ok = ok && late_add(&building, view, err) &&
	     also_add_all(&building, view, NULL, err) &&
	     (!has_base || own_close(root, err));
	fd_close(&building.folder);
	fd_close(&building.own);
	return ok;
}

bool view_build(struct view *view, struct err *err)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return view_fail(err, "making mounts private below", "/");
	qsort(view->entries, view->count, sizeof(view->entries[0]), entry_compare);
	struct view_entry *base = base_of(view);
	auto_close int stage = -1;
	auto_close int root = base != NULL
				      ? new_memory_of(base, MOUNT_ATTR_NODEV)
				      : view_new_memory(ROOT_SIZE, 0, VIEW_FOLDER_MODE,
							MOUNT_ATTR_NOSUID);
	if (root < 0)
		return view_fail(err, "making", "the new root");
	/*
	 * pivot_root needs a root that is mounted somewhere; /proc exists on every
	 * system.
	 */
	auto_close int anywhere = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (anywhere < 0 || kernel_move_mount(root, anywhere) < 0)
		return view_fail(err, "hanging up", "the new root");
	if (base != NULL) {
		stage = fd_take(&root);
		if (!base_lay(base, view, stage, &root, err))
			return false;
		/* For a worker that packs it. */
		base->layer = openat(stage, VIEW_LAYER_UPPER,
				     O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
	}
	if (!entries_add(root, view, err))
		return false;
	if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return view_fail(err, "changing to", "the new root");
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return view_fail(err, "letting go of", "the old root");
	if (base != NULL)
		return true; /* all of a base may be written */
	struct mount_attr closed = {.attr_set = MOUNT_ATTR_RDONLY};
	if (syscall(KERNEL_MOUNT_SETATTR, AT_FDCWD, "/", 0, &closed, sizeof(closed)) < 0)
		return view_fail(err, "closing", "the new root");
	return true;
}

/* Does another entry of VIEW lie at the path of ENTRY, in it, or around it? */
static bool has_company(const struct view *view, const struct view_entry *entry)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct view_entry *other = &view->entries[i];

		if (other != entry && other->kind != VIEW_BASE && !is_of_base(other) &&
		    (path_within(other->path, entry->path) ||
		     path_within(entry->path, other->path) ||
		     (other->kind == VIEW_ALSO && path_within(entry->path, other->source))))
			return true;
	}
	return false;
}

void view_wait(struct view *view)
{
	for (size_t i = 0; i < view->count; i++) {
		struct view_entry *entry = &view->entries[i];

		entry->waits =
			(entry->kind == VIEW_MEMORY || entry->kind == VIEW_TERMINALS) &&
			!has_company(view, entry);
	}
}

bool view_finish(struct view *view, struct err *err)
{
	struct view_building building = {.root = -1, .own = -1, .folder = -1};
	bool ok = true;

	for (size_t i = 0; ok && i < view->count; i++) {
		struct view_entry now = view->entries[i];

		if (!now.waits)
			continue;
		now.waits = false;
		if (building.root < 0)
			building.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		ok = building.root < 0 ? view_fail(err, "opening", "the root")
				       : view_add(&building, &now, err);
		view->entries[i].waits = !ok;
	}
	fd_close(&building.folder);
	fd_close(&building.root);
	return ok;
}

/* The root of a view without a base is read-only, except while entries are added to it. */
static bool root_set(int root, bool closed, struct err *err)
{
	struct mount_attr attributes = {
		.attr_set = closed ? MOUNT_ATTR_RDONLY : 0,
		.attr_clr = closed ? 0 : MOUNT_ATTR_RDONLY,
	};

	return syscall(KERNEL_MOUNT_SETATTR, root, "", AT_EMPTY_PATH, &attributes,
		       sizeof(attributes)) == 0 ||
	       view_fail(err, closed ? "closing" : "opening", "the root");
}

/* Later mounts on the host must not appear in the cell, nor the cell's on the host. */
static bool tree_keep_apart(const struct view_entry *entry, struct err *err)
{
	struct mount_attr apart = {.propagation = MS_PRIVATE};

	return !entry->detached ||
	       syscall(KERNEL_MOUNT_SETATTR, entry->fd, "", AT_EMPTY_PATH | AT_RECURSIVE,
		       &apart, sizeof(apart)) == 0 ||
	       view_fail(err, "keeping apart", entry->path);
}

bool view_widen(const struct view *whole, struct view *view, struct err *err)
{
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct view_building building = {.root = root, .own = -1, .folder = -1};
	struct statvfs fs;

	if (root < 0)
		return view_fail(err, "opening", "the root");
	qsort(view->entries, view->count, sizeof(view->entries[0]), entry_compare);
	/* As in sandbox_build. */
	mode_t mask = umask(0) & (S_IRWXG | S_IRWXO);
	const bool is_closed = fstatvfs(root, &fs) == 0 && (fs.f_flag & ST_RDONLY) != 0;
	bool ok = !is_closed || root_set(root, false, err);
	for (size_t i = 0; ok && i < view->count; i++)
		ok = tree_keep_apart(&view->entries[i], err) &&
		     above_hold(&building, view, whole, &view->entries[i], err) &&
		     view_add(&building, &view->entries[i], err);
	ok = ok && also_add_all(&building, whole, view, err);
	fd_close(&building.folder);
	struct err closing;
	if (is_closed && !root_set(root, true, ok ? err : &closing))
		ok = false;
	(void)umask(mask);
	return ok;
}

void view_narrow(const struct view *whole, const char *path)
{
	for (size_t i = 0; i < whole->count; i++) {
		const struct view_entry *also = &whole->entries[i];
		struct buf copy;

		buf_init(&copy, PATH_MAX);
		(void)buf_adds(&copy, path);
		if (also->kind == VIEW_ALSO && path_move(&copy, also->source, also->path))
			(void)umount2(copy.data, MNT_DETACH | UMOUNT_NOFOLLOW);
		buf_fini(&copy);
	}
	(void)umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
}
