/* rules: from a view to a Landlock ruleset; see rules.h. */
#include "sandbox/rules.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "sandbox/identity.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* Names beside what is hidden: /etc has a few hundred. A rule costs the kernel memory. */
	RULES_MAX = 16384,
	RULES_DEPTH_MAX = 64,
	ABI_MOVES = 2,
	ABI_TRUNCATE = 3,
	ABI_TCP = 4,
	ABI_DEVICES = 5,
	ABI_UNIX = 9,
};

#define ACCESS_READ                                                  \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | \
	 LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_MAKE                                                       \
	(LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |      \
	 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |    \
	 LANDLOCK_ACCESS_FS_MAKE_SYM)
#define ACCESS_DEVICES (LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK)
/* The rights that a rule on a file, not a folder, may grant. */
#define ACCESS_OF_FILE                                               \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | \
	 LANDLOCK_ACCESS_FS_WRITE_FILE | KERNEL_ACCESS_TRUNCATE | KERNEL_ACCESS_IOCTL_DEV)

/*
 * Of /proc only files about the machine are shown, none about a process. Thread pools,
 * build tools and programs that size their memory read them.
 */
static const char *const machine_files[] = {
	"/proc/cpuinfo",
	"/proc/meminfo",
	"/proc/stat",
	"/proc/loadavg",
	"/proc/uptime",
	"/proc/version",
	"/proc/filesystems",
	"/proc/sys/kernel/osrelease",
	"/proc/sys/kernel/ostype",
	"/proc/sys/kernel/version",
	"/proc/sys/kernel/pid_max",
	"/proc/sys/kernel/ngroups_max",
	"/proc/sys/kernel/cap_last_cap",
	"/proc/sys/vm/overcommit_memory",
	"/proc/sys/fs/pipe-max-size",
};

struct making {
	const struct view *view;
	int ruleset;
	uint64_t handled;
	size_t count;
};

struct kernel_landlock_ruleset rules_handled(int abi)
{
	struct kernel_landlock_ruleset all = {
		.handled_access_fs = ACCESS_READ | LANDLOCK_ACCESS_FS_WRITE_FILE |
				     ACCESS_MAKE | ACCESS_DEVICES,
	};

	if (abi >= ABI_MOVES)
		all.handled_access_fs |= KERNEL_ACCESS_REFER;
	if (abi >= ABI_TRUNCATE)
		all.handled_access_fs |= KERNEL_ACCESS_TRUNCATE;
	if (abi >= ABI_TCP)
		all.handled_access_net = KERNEL_LANDLOCK_TCP;
	if (abi >= ABI_DEVICES)
		all.handled_access_fs |= KERNEL_ACCESS_IOCTL_DEV;
	if (abi >= LANDLOCK_ABI_SCOPES)
		all.scoped = KERNEL_LANDLOCK_SCOPE_ABSTRACT | KERNEL_LANDLOCK_SCOPE_SIGNAL;
	if (abi >= ABI_UNIX)
		all.handled_access_fs |= KERNEL_ACCESS_RESOLVE_UNIX;
	return all;
}

/* An older kernel takes a structure that ends where its knowledge does. */
static size_t ruleset_size(int abi)
{
	if (abi >= LANDLOCK_ABI_SCOPES)
		return sizeof(struct kernel_landlock_ruleset);
	return abi >= ABI_TCP ? offsetof(struct kernel_landlock_ruleset, scoped)
			      : sizeof(uint64_t);
}

static bool rule_add(struct making *making, int fd, const char *path, uint64_t access,
		     struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(err, errno, "Landlock rule for %s: %s", path,
			       strerror(errno));
	if (++making->count > RULES_MAX)
		return err_set(err, E2BIG,
			       "%s: over %d names lie beside what is hidden; at level L2 each "
			       "needs a rule: hide a whole folder instead",
			       path, RULES_MAX);
	struct kernel_landlock_beneath rule = {
		.allowed_access = making->handled & access &
				  (S_ISDIR(st.st_mode) ? UINT64_MAX : ACCESS_OF_FILE),
		.parent_fd = fd,
	};
	if (rule.allowed_access != 0 && syscall(KERNEL_LANDLOCK_ADD, making->ruleset,
						KERNEL_LANDLOCK_BENEATH, &rule, 0) < 0)
		return err_set(err, errno, "Landlock rule for %s: %s", path,
			       strerror(errno));
	return true;
}

enum hidden { HIDDEN_NOTHING, HIDDEN_ITSELF, HIDDEN_FILE_BELOW, HIDDEN_FOLDER_BELOW };

static enum hidden hidden_at(const struct view *view, const char *path)
{
	enum hidden found = HIDDEN_NOTHING;

	for (size_t i = 0; i < view->count; i++) {
		const struct view_entry *entry = &view->entries[i];
		struct stat st;

		if (entry->kind != VIEW_MASK)
			continue;
		if (path_within(path, entry->path))
			return HIDDEN_ITSELF;
		if (!path_within(entry->path, path) || lstat(entry->path, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			found = HIDDEN_FOLDER_BELOW;
		else if (found == HIDDEN_NOTHING)
			found = HIDDEN_FILE_BELOW;
	}
	return found;
}

static bool tree_grant(struct making *making, int fd, struct buf *path, int depth,
		       struct err *err);

/* One name in a folder that holds something hidden. A link is judged by what it leads to. */
static bool child_grant(struct making *making, int folder, const char *name,
			struct buf *path, int depth, struct err *err)
{
	size_t size = path->size;
	struct stat st;
	auto_close int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT || errno == EACCES ||
		       err_set(err, errno, "%s/%s: %s", path->data, name, strerror(errno));
	if (S_ISLNK(st.st_mode))
		return true;
	if (!buf_addf(path, "/%s", name))
		return err_set(err, ENAMETOOLONG, "%s/%s: the path is too long",
			       path->data, name);
	bool ok = tree_grant(making, fd, path, depth + 1, err);
	buf_truncate(path, size);
	return ok;
}

static bool children_grant(struct making *making, int fd, struct buf *path, int depth,
			   struct err *err)
{
	auto_close int readable = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = readable < 0 ? NULL : fdopendir(readable);
	bool ok = true;

	if (folder == NULL)
		return errno == EACCES ||
		       err_set(err, errno, "%s: %s", path->data, strerror(errno));
	(void)fd_take(&readable); /* the stream's now */
	for (struct dirent *entry = readdir(folder); ok && entry != NULL;
	     entry = readdir(folder)) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			ok = child_grant(making, dirfd(folder), entry->d_name, path,
					 depth, err);
	}
	(void)closedir(folder);
	return ok;
}

static bool tree_grant(struct making *making, int fd, struct buf *path, int depth,
		       struct err *err)
{
	enum hidden hidden = hidden_at(making->view, path->data);

	if (hidden == HIDDEN_ITSELF)
		return true;
	if (hidden == HIDDEN_NOTHING)
		return rule_add(making, fd, path->data, ACCESS_READ, err);
	if (depth >= RULES_DEPTH_MAX)
		return err_set(err, ELOOP, "%s: too deep", path->data);
	/* A list of names may be seen down to the bottom: not where a folder is hidden. */
	if (hidden == HIDDEN_FILE_BELOW &&
	    !rule_add(making, fd, path->data, LANDLOCK_ACCESS_FS_READ_DIR, err))
		return false;
	return children_grant(making, fd, path, depth, err);
}

static bool writable_grant(struct making *making, int fd, const char *path, struct err *err)
{
	if (hidden_at(making->view, path) != HIDDEN_NOTHING)
		return err_set(err, EINVAL,
			       "%s may be written, and something below it is hidden: level "
			       "L2 cannot do both",
			       path);
	return rule_add(making, fd, path,
			ACCESS_READ | LANDLOCK_ACCESS_FS_WRITE_FILE |
				KERNEL_ACCESS_TRUNCATE | ACCESS_MAKE |
				KERNEL_ACCESS_REFER | KERNEL_ACCESS_RESOLVE_UNIX,
			err);
}

static bool tree_add(struct making *making, const struct view_entry *entry, struct err *err)
{
	struct stat held, found;
	struct buf path;
	auto_close int fd = open(entry->source, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return (entry->optional && (errno == ENOENT || errno == EACCES)) ||
		       err_set(err, errno,
			       "%s: %s for user %u, who the cell runs as: at level L2 every "
			       "folder above must let it through",
			       entry->source, strerror(errno), (unsigned)geteuid());
	if (entry->fd >= 0 && (fstat(entry->fd, &held) < 0 || fstat(fd, &found) < 0 ||
			       held.st_dev != found.st_dev || held.st_ino != found.st_ino))
		return err_set(err, ESTALE, "%s was replaced while the cell was built",
			       entry->source);
	if (entry->writable)
		return writable_grant(making, fd, entry->source, err);
	buf_init(&path, PATH_MAX);
	bool ok = buf_adds(&path, entry->source) && tree_grant(making, fd, &path, 0, err);
	buf_fini(&path);
	return ok;
}

static bool file_add(struct making *making, const char *path, uint64_t access,
		     struct err *err)
{
	auto_close int fd = open(path, O_PATH | O_CLOEXEC);

	/* Not every machine has every file; a missing one needs no rule. */
	return fd < 0 || rule_add(making, fd, path, access, err);
}

static bool entries_add(struct making *making, struct err *err)
{
	for (size_t i = 0; i < making->view->count; i++) {
		const struct view_entry *entry = &making->view->entries[i];
		bool ok = true;

		if (entry->kind == VIEW_TREE)
			ok = tree_add(making, entry, err);
		else if (entry->kind == VIEW_DEVICE)
			ok = file_add(making, entry->source,
				      LANDLOCK_ACCESS_FS_READ_FILE |
					      LANDLOCK_ACCESS_FS_WRITE_FILE |
					      KERNEL_ACCESS_IOCTL_DEV,
				      err);
		if (!ok)
			return false;
	}
	for (size_t i = 0; i < sizeof(machine_files) / sizeof(machine_files[0]); i++) {
		if (!file_add(making, machine_files[i], LANDLOCK_ACCESS_FS_READ_FILE, err))
			return false;
	}
	return true;
}

bool rules_make(const struct view *view, int abi, int *rules, struct err *err)
{
	const struct kernel_landlock_ruleset all = rules_handled(abi);
	auto_close int ruleset =
		(int)syscall(KERNEL_LANDLOCK_CREATE, &all, ruleset_size(abi), 0);
	struct making making = {.view = view,
				.ruleset = ruleset,
				.handled = all.handled_access_fs};

	if (ruleset < 0)
		return landlock_refused(err);
	if (!entries_add(&making, err))
		return false;
	*rules = fd_take(&ruleset);
	return true;
}

bool rules_domain(int *rules, struct err *err)
{
	/*
	 * A ruleset must handle at least one right: REFER is handled and granted to all
	 * files.
	 */
	const struct kernel_landlock_ruleset wanted = {
		.handled_access_fs = KERNEL_ACCESS_REFER,
		.scoped = KERNEL_LANDLOCK_SCOPE_ABSTRACT | KERNEL_LANDLOCK_SCOPE_SIGNAL,
	};
	auto_close int ruleset =
		(int)syscall(KERNEL_LANDLOCK_CREATE, &wanted, sizeof(wanted), 0);
	struct making making = {.ruleset = ruleset, .handled = KERNEL_ACCESS_REFER};
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (ruleset < 0)
		return landlock_refused(err);
	if (root < 0)
		return err_set(err, errno, "/: %s", strerror(errno));
	if (!rule_add(&making, root, "/", KERNEL_ACCESS_REFER, err))
		return false;
	*rules = fd_take(&ruleset);
	return true;
}
