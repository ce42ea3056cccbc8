/*
 * view_entry: how each kind of entry is shown: trees of the host, memory, texts, masks,
 * layers; see view_parts.h.
 */
#include "sandbox/view_parts.h"

#include "base/fd.h"
#include "base/kernel.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* A name takes memory that counts for nothing: one for each page, and some where there are few. */
enum { FILE_ROOM = 4 << 10, FILES_MIN = 1 << 10 };

/*
 * The tree that SOURCE leads to now; it must be the one that was held before (the name
 * may have been swapped).
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

static bool memory_add(struct view_building *building, const struct view_entry *entry,
		       struct err *err)
{
	const uint64_t files = entry->size / FILE_ROOM;

	auto_close int tree =
		view_new_memory(entry->size, files > FILES_MIN ? files : FILES_MIN,
				entry->mode, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (tree < 0)
		return view_fail(err, "making memory for", entry->path);
	return view_place(building, tree, entry->path, true, err);
}

/* A new file with TEXT in it, which nobody may write afterwards. */
static bool text_make(int folder, const char *name, const char *text, struct err *err)
{
	auto_close int fd =
		openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       VIEW_FILE_MODE);

	if (fd < 0)
		return view_fail(err, "making", name);
	return fd_write_all(fd, text, strlen(text), err);
}

/* Bind our own file or folder NAME read-only over PATH. */
static bool bind_over(struct view_building *building, const char *name, const char *path,
		      bool is_folder, struct err *err)
{
	auto_close int tree =
		kernel_open_tree(building->own, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0)
		return view_fail(err, "opening", name);
	return view_set_attributes(tree,
				   MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					   MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
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
		return true; /* what it leads to is masked under its own name */
	bool is_folder = S_ISDIR(st.st_mode);
	return bind_over(building, is_folder ? VIEW_EMPTY_FOLDER : VIEW_EMPTY_FILE,
			 entry->path, is_folder, err);
}

/* A text over an existing file of a read-only tree is a bind of one of our own files. */
static bool text_add(struct view_building *building, const struct view_entry *entry,
		     struct err *err)
{
	char own[32];

	if (!view_hold_folder(building, entry->path, true))
		return view_fail(err, "opening the folder of", entry->path);
	if (text_make(building->folder, path_base_name(entry->path), entry->source, err))
		return true;
	if (err->code != EEXIST && err->code != EROFS)
		return false;
	(void)snprintf(own, sizeof(own), "text%u", building->texts++);
	return text_make(building->own, own, entry->source, err) &&
	       bind_over(building, own, entry->path, false, err);
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
 * (shape_cache.c). The kernel makes its `work` in `scratch`.
 */
static const char *const layer_folders[] = {VIEW_LAYER_UPPER, "scratch", VIEW_LAYER_LOWER};

/*
 * All three layers are named from the upper folder, which covers itself with the result:
 * no path of the user's is quoted in an option, and kernels that know no detached layers
 * take them. The merged folder shows the mode of its upper one. Volatile: the end of a
 * cell would else write out all that waits on the upper folder's disk, whoever's it is.
 */
static bool layers_mount(int upper, int lower, const struct stat *st, struct err *err)
{
	for (size_t i = 0; i < sizeof(layer_folders) / sizeof(layer_folders[0]); i++) {
		if (mkdirat(upper, layer_folders[i], 0700) < 0 && errno != EEXIST)
			return view_fail(err, "making a layer", layer_folders[i]);
	}
	auto_close int point = openat(upper, VIEW_LAYER_LOWER,
				      O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
	if (point < 0 || kernel_move_mount(lower, point) < 0)
		return view_fail(err, "mounting a layer", "lower");
	if (fchmodat(upper, VIEW_LAYER_UPPER, st->st_mode & 01777, 0) < 0)
		return view_fail(err, "setting the mode of a layer", "upper");
	if (fchdir(upper) < 0 || mount("overlay", ".", "overlay", MS_NOSUID | MS_NODEV,
				       "lowerdir=" VIEW_LAYER_LOWER ",upperdir=" VIEW_LAYER_UPPER
				       ",workdir=scratch,userxattr,volatile") < 0)
		return view_fail(err, "mounting layers over", "lower");
	return true;
}

static bool overlay_add(int root, struct view_entry *entry, struct err *err)
{
	auto_close int lower = -1, upper = -1;
	struct stat st;
	bool ok;

	upper = view_open(root, entry->path, O_PATH | O_DIRECTORY);
	if (upper < 0)
		return view_fail(err, "opening", entry->path);
	ok = source_open(entry, &lower, err) &&
	     view_set_attributes(lower,
				 MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
				 entry->path, err) &&
	     (fstat(lower, &st) == 0 || view_fail(err, "looking at", entry->source)) &&
	     layers_mount(upper, lower, &st, err);
	if (ok && entry->passing)
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

bool view_add(struct view_building *building, struct view_entry *entry, struct err *err)
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
