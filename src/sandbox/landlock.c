/*
 * landlock: Landlock rulesets, for workers and programs. At L3 Landlock is the second
 * wall for writes and signals; the view limits reading, and the network namespace
 * limits TCP and abstract sockets, so that commands of one cell may talk to each other.
 * All rules are one ruleset, which the worker loads: a second one in the anchor would
 * deny moves and links between folders (REFER), or forbid the mounts that workers need.
 */

#include "sandbox/landlock.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "base/path.h"
#include "sandbox/view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utime.h>

#define ACCESS_CREATE                                                     \
	(LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | \
	 LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |     \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |     \
	 LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |   \
	 LANDLOCK_ACCESS_FS_MAKE_SYM | KERNEL_ACCESS_REFER)

int landlock_abi(void)
{
	long abi = syscall(KERNEL_LANDLOCK_CREATE, NULL, 0, KERNEL_LANDLOCK_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

/* Set ERR to a sentence for errno after a ruleset could not be made. Returns false. */
static bool landlock_refused(struct err *err)
{
	if (errno == EOPNOTSUPP)
		return err_set(err, errno,
			       "Landlock is switched off in this kernel; add landlock to lsm= on "
			       "its command line");
	return err_set(err, errno, "Landlock: %s", strerror(errno));
}

bool landlock_enter(int ruleset, struct err *err)
{
	if (syscall(KERNEL_LANDLOCK_RESTRICT, ruleset, 0) < 0)
		return err_set(err, errno, "Landlock: %s", strerror(errno));
	return true;
}

static bool writable_add(int ruleset, const char *path, uint64_t access, struct err *err)
{
	struct stat st;
	auto_close int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "Landlock rule for %s: %s", path,
			       strerror(errno));
	struct kernel_landlock_beneath rule = {
		.allowed_access = S_ISDIR(st.st_mode)
					  ? access
					  : access & LANDLOCK_ACCESS_FS_WRITE_FILE,
		.parent_fd = fd,
	};
	if (syscall(KERNEL_LANDLOCK_ADD, ruleset, KERNEL_LANDLOCK_BENEATH, &rule, 0) < 0)
		return err_set(err, errno, "Landlock rule for %s: %s", path,
			       strerror(errno));
	return true;
}

bool landlock_no_files(const struct landlock_grant *grants, size_t count, struct err *err)
{
	const int abi = landlock_abi();
	/*
	 * All rights up to MAKE_SYM; then REFER with ABI 2, TRUNCATE with 3, IOCTL_DEV
	 * with 5.
	 */
	const unsigned known = abi >= 5 ? 16 : abi >= 3 ? 15 : abi >= 2 ? 14 : 13;
	const struct kernel_landlock_ruleset wanted = {
		.handled_access_fs = (1ULL << known) - 1,
		.scoped = abi >= LANDLOCK_ABI_SCOPES ? KERNEL_LANDLOCK_SCOPE_SIGNAL |
							       KERNEL_LANDLOCK_SCOPE_ABSTRACT
						     : 0,
	};

	if (abi == 0)
		return true; /* the filter of the process stays */
	auto_close int ruleset = (int)syscall(KERNEL_LANDLOCK_CREATE, &wanted,
					      abi >= LANDLOCK_ABI_SCOPES
						      ? sizeof(wanted)
						      : sizeof(wanted.handled_access_fs),
					      0);
	bool fine = ruleset >= 0;
	for (size_t i = 0; i < count && fine; i++) {
		const struct kernel_landlock_beneath rule = {
			.allowed_access = grants[i].rights & wanted.handled_access_fs,
			.parent_fd = grants[i].folder,
		};

		fine = syscall(KERNEL_LANDLOCK_ADD, ruleset, KERNEL_LANDLOCK_BENEATH,
			       &rule, 0) == 0;
	}
	return fine ? landlock_enter(ruleset, err)
		    : err_set(err, errno, "Landlock: %s", strerror(errno));
}

bool landlock_write_below(const char *const *writable, struct err *err)
{
	/*
	 * TRUNCATE is not handled: it would slow down every open (0.45-1.45 us instead
	 * of 0.15), and read-only mounts prevent truncation. ABI 1 does not know REFER;
	 * there the kernel refuses every move between folders.
	 */
	const int abi = landlock_abi();
	const uint64_t known = abi >= 2 ? UINT64_MAX : ~KERNEL_ACCESS_REFER;
	const uint64_t all = (LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_CREATE) & known;
	const bool scopes = abi >= LANDLOCK_ABI_SCOPES;
	const struct kernel_landlock_ruleset wanted = {
		.handled_access_fs = all,
		.scoped = scopes ? KERNEL_LANDLOCK_SCOPE_SIGNAL : 0,
	};
	/* Without scopes, pass the size of ABI 1, which every kernel accepts. */
	auto_close int ruleset =
		(int)syscall(KERNEL_LANDLOCK_CREATE, &wanted,
			     scopes ? sizeof(wanted) : sizeof(wanted.handled_access_fs), 0);

	if (ruleset < 0)
		return landlock_refused(err);
	for (size_t i = 0; writable[i] != NULL; i++) {
		if (!writable_add(ruleset, writable[i], all, err))
			return false;
	}
	/*
	 * Programs write to devices and to their own /proc files (thread names, a
	 * debugger's memory), but never create any.
	 */
	if (!writable_add(ruleset, "/dev", LANDLOCK_ACCESS_FS_WRITE_FILE, err) ||
	    !writable_add(ruleset, "/proc", LANDLOCK_ACCESS_FS_WRITE_FILE, err))
		return false;
	return landlock_enter(ruleset, err);
}

/* Turns a view into a Landlock ruleset. */

enum {
	/*
	 * Enough for the names beside hidden files: /etc has a few hundred names. A
	 * rule costs memory in the kernel.
	 */
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
/* The rights that a rule may grant on a file that is not a folder. */
#define ACCESS_OF_FILE                                               \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | \
	 LANDLOCK_ACCESS_FS_WRITE_FILE | KERNEL_ACCESS_TRUNCATE | KERNEL_ACCESS_IOCTL_DEV)

/*
 * Only files of /proc about the machine are shown, none about a process. Thread pools,
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

struct kernel_landlock_ruleset landlock_rules_handled(int abi)
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

/*
 * The size of the struct that a kernel with ABI knows. An older kernel accepts only
 * that size.
 */
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

/*
 * Grant access to one name in a folder that has something hidden below it. A link needs
 * no rule, because the kernel judges its target.
 */
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
	(void)fd_take(&readable); /* the stream owns it now */
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
	/*
	 * A right to list a folder holds for all folders below it. So grant it only
	 * where no folder below is hidden.
	 */
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

	/* A file that is missing on this machine needs no rule. */
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

bool landlock_rules_make(const struct view *view, int abi, int *rules, struct err *err)
{
	const struct kernel_landlock_ruleset all = landlock_rules_handled(abi);
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

bool landlock_rules_domain(int *rules, struct err *err)
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

/*
 * Changes modes, owners and times of files at level L2. Landlock does not judge these
 * calls, and no filter can read a path. So the calls of programs come here, and the
 * worker makes them, below the writable roots only. The worker holds the file by a
 * descriptor while it checks the place and changes the file. The program's memory is
 * read only once.
 */

enum { CALL_FCHMODAT2 = 452, NANOSECONDS_IN_MICROSECOND = 1000, RECORD_ROOM = 1024 };

enum change_kind { CHANGE_MODE, CHANGE_OWNER, CHANGE_TIMES };

/* One call with its arguments. */
struct change {
	pid_t pid;
	enum change_kind kind;
	/* a descriptor of the program, or AT_FDCWD; with by_fd the file itself */
	int folder;
	bool by_fd;
	uint64_t path; /* in the program's memory */
	int flags;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	bool now;
	struct timespec times[2];
};

/* Read SIZE bytes of the program's memory. False with errno. */
static bool memory_read(pid_t pid, uint64_t at, void *data, size_t size)
{
	struct iovec here = {data, size}, there = {(void *)(uintptr_t)at, size};
	ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);

	/* The filter of a sealed cell refuses that call to its worker as well. */
	if (n < 0 && errno == EPERM) {
		char name[64];

		(void)snprintf(name, sizeof(name), "/proc/%d/mem", (int)pid);
		auto_close int memory = open(name, O_RDONLY | O_CLOEXEC);
		n = memory < 0 ? -1 : pread(memory, data, size, (off_t)at);
	}
	if (n == (ssize_t)size)
		return true;
	if (n >= 0)
		errno = EFAULT;
	return false;
}

/*
 * Read up to the end of each page, because a text may end just before an unmapped page.
 */
static bool path_read(pid_t pid, uint64_t at, char path[PATH_MAX])
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = 0;

	while (size < PATH_MAX) {
		size_t most = page - (size_t)((at + size) % page);

		if (most > PATH_MAX - size)
			most = PATH_MAX - size;
		if (!memory_read(pid, at + size, path + size, most))
			return false;
		if (memchr(path + size, '\0', most) != NULL)
			return true;
		size += most;
	}
	errno = ENAMETOOLONG;
	return false;
}

static bool times_read(struct change *change, uint64_t at, int number)
{
	struct timeval values[2];
	struct utimbuf seconds;

	change->kind = CHANGE_TIMES;
	change->now = at == 0;
	if (at == 0)
		return true;
	if (number == SYS_utimensat)
		return memory_read(change->pid, at, change->times, sizeof(change->times));
#if defined(__x86_64__)
	if (number == SYS_utime) {
		if (!memory_read(change->pid, at, &seconds, sizeof(seconds)))
			return false;
		change->times[0].tv_sec = seconds.actime;
		change->times[1].tv_sec = seconds.modtime;
		return true;
	}
#else
	(void)seconds;
#endif
	if (!memory_read(change->pid, at, values, sizeof(values)))
		return false;
	for (int i = 0; i < 2; i++) {
		change->times[i].tv_sec = values[i].tv_sec;
		/* A value out of range stays so, and the kernel refuses it. */
		change->times[i].tv_nsec = values[i].tv_usec * NANOSECONDS_IN_MICROSECOND;
	}
	return true;
}

static void take_owner(struct change *change, uint64_t uid, uint64_t gid)
{
	change->kind = CHANGE_OWNER;
	change->uid = (uid_t)uid;
	change->gid = (gid_t)gid;
}

/* The older calls, which only x86-64 still has. */
static bool change_read_old(struct change *change, const struct seccomp_data *data)
{
#if defined(__x86_64__)
	const __u64 *a = data->args;

	change->folder = AT_FDCWD;
	change->path = a[0];
	switch (data->nr) {
	case SYS_chmod:
		change->mode = (mode_t)a[1];
		return true;
	case SYS_lchown:
		change->flags = AT_SYMLINK_NOFOLLOW;
		take_owner(change, a[1], a[2]);
		return true;
	case SYS_chown:
		take_owner(change, a[1], a[2]);
		return true;
	case SYS_utime:
	case SYS_utimes:
		return times_read(change, a[1], data->nr);
	case SYS_futimesat:
		change->folder = (int)a[0];
		change->path = a[1];
		change->by_fd = a[1] == 0;
		return times_read(change, a[2], data->nr);
	default:
		break;
	}
#else
	(void)change;
	(void)data;
#endif
	errno = ENOSYS;
	return false;
}

static bool change_read(struct change *change, const struct seccomp_data *data)
{
	const __u64 *a = data->args;

	change->kind = CHANGE_MODE;
	change->folder = (int)a[0];
	change->path = a[1];
	switch (data->nr) {
	case SYS_fchmod:
		change->by_fd = true;
		change->mode = (mode_t)a[1];
		return true;
	case SYS_fchmodat:
	case CALL_FCHMODAT2:
		change->mode = (mode_t)a[2];
		change->flags = data->nr == CALL_FCHMODAT2 ? (int)a[3] : 0;
		return true;
	case SYS_fchown:
		change->by_fd = true;
		take_owner(change, a[1], a[2]);
		return true;
	case SYS_fchownat:
		change->flags = (int)a[4];
		take_owner(change, a[2], a[3]);
		return true;
	case SYS_utimensat:
		change->flags = (int)a[3];
		change->by_fd = a[1] == 0;
		return times_read(change, a[2], data->nr);
	default:
		return change_read_old(change, data);
	}
}

/* Open the file behind the program's descriptor NUMBER, or its working folder. */
static int held_of(pid_t pid, int number)
{
	char link[64];

	if (number == AT_FDCWD)
		(void)snprintf(link, sizeof(link), "/proc/%d/cwd", (int)pid);
	else
		(void)snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)pid, number);
	int fd = open(link, O_PATH | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && number != AT_FDCWD)
		errno = EBADF;
	return fd;
}

/*
 * The number in a path such as "/dev/fd/7" or "/proc/self/fd/7/name", which means a descriptor of
 * the program, not ours; *REST is the part below it, "" where there is none. -1: PATH is no
 * such path.
 */
static int named_descriptor(const char *path, const char **rest)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/",
					      "/proc/thread-self/fd/"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t size = strlen(folders[i]);
		char *end;

		if (strncmp(path, folders[i], size) != 0 || path[size] < '0' ||
		    path[size] > '9')
			continue;
		long number = strtol(path + size, &end, 10);
		if ((*end != '\0' && *end != '/') || number > INT_MAX)
			continue;
		*rest = end + strspn(end, "/");
		return (int)number;
	}
	return -1;
}

static int target_open(const struct change *change)
{
	const bool nofollow = (change->flags & AT_SYMLINK_NOFOLLOW) != 0;
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | (nofollow ? O_NOFOLLOW : 0),
		/* Resolved here, /proc/self would be this worker, not the program. */
		.resolve = RESOLVE_NO_MAGICLINKS,
	};
	char path[PATH_MAX];

	if (change->by_fd)
		return held_of(change->pid, change->folder);
	if (!path_read(change->pid, change->path, path))
		return -1;
	if (path[0] == '\0') {
		if ((change->flags & AT_EMPTY_PATH) != 0)
			return held_of(change->pid, change->folder);
		errno = ENOENT;
		return -1;
	}
	const char *rest = path;
	const int number = named_descriptor(path, &rest);
	if (number >= 0 && rest[0] == '\0' && !nofollow)
		return held_of(change->pid, number);
	if (number < 0 || rest[0] == '\0')
		rest = path;
	auto_close int folder =
		rest[0] == '/'
			? -1
			: held_of(change->pid, rest != path ? number : change->folder);
	if (rest[0] != '/' && folder < 0)
		return -1;
	return (int)syscall(SYS_openat2, folder, rest, &how, sizeof(how));
}

static bool lies_below(int fd, const char *const *writable)
{
	struct buf place;
	bool below = false;

	buf_init(&place, PATH_MAX);
	if (fd_real_path(fd, &place)) {
		for (; *writable != NULL && !below; writable++)
			below = path_within(place.data, *writable);
	}
	buf_fini(&place);
	return below;
}

static int change_do(const struct change *change, int fd)
{
	char name[FD_NAME_ROOM];

	switch (change->kind) {
	case CHANGE_MODE:
		if ((change->mode & (S_ISUID | S_ISGID)) != 0)
			return EPERM;
		if ((change->flags & AT_SYMLINK_NOFOLLOW) != 0) {
			struct stat st;
			if (fstat(fd, &st) == 0 && S_ISLNK(st.st_mode))
				return EOPNOTSUPP;
		}
		return chmod(fd_name(fd, name), change->mode & 07777) < 0 ? errno : 0;
	case CHANGE_OWNER:
		return fchownat(fd, "", change->uid, change->gid, AT_EMPTY_PATH) < 0 ? errno
										     : 0;
	case CHANGE_TIMES:
		/* Old versions of the C library refuse an empty path with this flag. */
		return syscall(SYS_utimensat, fd, "", change->now ? NULL : change->times,
			       AT_EMPTY_PATH) < 0
			       ? errno
			       : 0;
	}
	return EINVAL;
}

static int answer(int listener, const struct seccomp_notif *asked,
		  const char *const *writable)
{
	struct change change = {.pid = (pid_t)asked->pid};
	__u64 id = asked->id;

	if (!change_read(&change, &asked->data))
		return errno;
	auto_close int fd = target_open(&change);
	int code = errno;
	/* Is the caller still alive? Its pid may already belong to another process. */
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) < 0)
		return ESRCH;
	if (fd < 0)
		return code;
	return lies_below(fd, writable) ? change_do(&change, fd) : EPERM;
}

bool landlock_change_mode(int listener, const struct seccomp_notif *asked)
{
	struct seccomp_notif_resp said = {.id = asked->id};
	struct change change = {.pid = (pid_t)asked->pid};
	__u64 id = asked->id;

	if (!change_read(&change, &asked->data) || change.kind != CHANGE_MODE)
		return false;
	change.mode &= ~(mode_t)(S_ISUID | S_ISGID);
	auto_close int fd = target_open(&change);
	int code = fd < 0 ? errno : 0;
	/* Is the caller still alive? Its pid may already belong to another process. */
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) < 0)
		return true;
	if (code == 0)
		code = change_do(&change, fd);
	said.error = -code;
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &said);
	return true;
}

void landlock_answer(int listener, const char *const *writable)
{
	/* A newer kernel may read and write longer structs than these headers have. */
	union {
		struct seccomp_notif notif;
		char room[RECORD_ROOM];
	} asked;
	union {
		struct seccomp_notif_resp notif;
		char room[RECORD_ROOM];
	} said;

	memset(&asked, 0, sizeof(asked));
	memset(&said, 0, sizeof(said));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) < 0)
		return; /* the calling program is gone */
	said.notif.id = asked.notif.id;
	said.notif.error = -answer(listener, &asked.notif, writable);
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &said);
}
