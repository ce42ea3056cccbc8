/*
 * view: the cell's file system. A tmpfs becomes the new root, host trees are copied onto
 * it as mounts of their own, and the old root is let go.
 */
#include "base/fd.h"
#include "base/kernel.h"
#include "base/path.h"
#include "sandbox/rules.h"
#include "sandbox/sandbox.h"
#include "sandbox/view_parts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* The root holds mount points and a few small files, never data. */
enum { ROOT_SIZE = 4 << 20 };

/* Where texts and the sources of masks lie in the view. */
#define OWN_FOLDER "/run/glovebox"

/* The order of entries at one path: content, overlay, pins, mask. */
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
	struct view_building building = {.root = root, .folder = -1};
	bool ok = true;

	qsort(view->entries, view->count, sizeof(view->entries[0]), entry_compare);
	building.own = view_make_folder(root, OWN_FOLDER);
	if (building.own < 0 || mkdirat(building.own, VIEW_EMPTY_FOLDER, 0555) < 0 ||
	    mknodat(building.own, VIEW_EMPTY_FILE, S_IFREG | VIEW_FILE_MODE, 0) < 0)
		ok = view_fail(err, "making", OWN_FOLDER);
	for (size_t i = 0; ok && i < view->count; i++)
		ok = view_add(&building, &view->entries[i], err);
	fd_close(&building.folder);
	fd_close(&building.own);
	return ok;
}

/*
 * Clear the umask, so that files of the view get exactly the modes that are named.
 * Returns the umask for programs: the caller's, without the bits of the owner.
 */
static mode_t mask_lift(void)
{
	return umask(0) & (S_IRWXG | S_IRWXO);
}

static bool view_build(struct view *view, struct err *err)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return view_fail(err, "making mounts private below", "/");
	auto_close int root =
		view_new_memory(ROOT_SIZE, 0, VIEW_FOLDER_MODE, MOUNT_ATTR_NOSUID);
	if (root < 0)
		return view_fail(err, "making", "the new root");
	/*
	 * pivot_root needs a root that is mounted somewhere; /proc exists on every
	 * system.
	 */
	auto_close int anywhere = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (anywhere < 0 || kernel_move_mount(root, anywhere) < 0)
		return view_fail(err, "hanging up", "the new root");
	if (!entries_add(root, view, err))
		return false;
	if (fchdir(root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return view_fail(err, "changing to", "the new root");
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return view_fail(err, "letting go of", "the old root");
	struct mount_attr closed = {.attr_set = MOUNT_ATTR_RDONLY};
	if (syscall(KERNEL_MOUNT_SETATTR, AT_FDCWD, "/", 0, &closed, sizeof(closed)) < 0)
		return view_fail(err, "closing", "the new root");
	return true;
}

/* The root of the view is read-only, except while entries are added to it. */
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

bool sandbox_widen(struct view *view, struct err *err)
{
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct view_building building = {.root = root, .own = -1, .folder = -1};

	if (root < 0)
		return view_fail(err, "opening", "the root");
	qsort(view->entries, view->count, sizeof(view->entries[0]), entry_compare);
	mode_t mask = mask_lift();
	bool ok = root_set(root, false, err);
	for (size_t i = 0; ok && i < view->count; i++)
		ok = tree_keep_apart(&view->entries[i], err) &&
		     view_add(&building, &view->entries[i], err);
	fd_close(&building.folder);
	struct err closing;
	if (!root_set(root, true, ok ? err : &closing))
		ok = false;
	(void)umask(mask);
	return ok;
}

void sandbox_narrow(const char *path)
{
	(void)umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
}

bool sandbox_build(enum sandbox_level level, struct view *view, int *rules, struct err *err)
{
	mode_t mask = mask_lift();
	bool ok = true;

	*rules = -1;
	if (level >= SANDBOX_SEALED)
		ok = view_build(view, err);
	else if (level == SANDBOX_RULES)
		ok = rules_make(view, sandbox_landlock_abi(), rules, err);
	(void)umask(mask);
	return ok;
}
