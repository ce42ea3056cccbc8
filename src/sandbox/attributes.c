/*
 * attributes: modes, owners and times of files at level L2. Landlock does not judge them
 * and no filter can read a path, so programs' calls come here and are done for them,
 * below the writable roots only. The file is held by a descriptor while its place is
 * looked at and while it is changed; the program's memory is read once.
 */
#include "base/buf.h"
#include "base/fd.h"
#include "base/kernel.h"
#include "base/path.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utime.h>

enum { CALL_FCHMODAT2 = 452, NANOSECONDS_IN_MICROSECOND = 1000, RECORD_ROOM = 1024 };

enum change_kind { CHANGE_MODE, CHANGE_OWNER, CHANGE_TIMES };

/* One call, its arguments sorted out. */
struct change {
	pid_t pid;
	enum change_kind kind;
	int folder; /* the program's descriptor, or AT_FDCWD; of the file when by_fd */
	bool by_fd;
	uint64_t path; /* in the program's memory */
	int flags;
	mode_t mode;
	uid_t uid;
	gid_t gid;
	bool now;
	struct timespec times[2];
};

/* SIZE bytes of the program's memory; false with errno. */
static bool memory_read(pid_t pid, uint64_t at, void *data, size_t size)
{
	struct iovec here = {data, size}, there = {(void *)(uintptr_t)at, size};
	ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);

	if (n == (ssize_t)size)
		return true;
	if (n >= 0)
		errno = EFAULT;
	return false;
}

/* A text may end just before a page that is not there: read to the end of each page. */
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
		/* A value out of range stays out of range: the kernel refuses it. */
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

/* "/dev/fd/7" means a descriptor of the program's, which is not ours; -1 else. */
static int named_descriptor(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

	for (size_t i = 0; i < 2; i++) {
		size_t size = strlen(folders[i]);
		char *end;

		if (strncmp(path, folders[i], size) != 0 || path[size] < '0' ||
		    path[size] > '9')
			continue;
		long number = strtol(path + size, &end, 10);
		if (*end == '\0' && number <= INT_MAX)
			return (int)number;
	}
	return -1;
}

static int target_open(const struct change *change)
{
	const bool nofollow = (change->flags & AT_SYMLINK_NOFOLLOW) != 0;
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | (nofollow ? O_NOFOLLOW : 0),
		/* Here /proc/self would be this worker, not the program. */
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
	int number = nofollow ? -1 : named_descriptor(path);
	if (number >= 0)
		return held_of(change->pid, number);
	auto_close int folder = path[0] == '/' ? -1 : held_of(change->pid, change->folder);
	if (path[0] != '/' && folder < 0)
		return -1;
	return (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
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
		/* The C library refuses an empty path with this flag on old versions. */
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

void sandbox_answer(int listener, const char *const *writable)
{
	/* A later kernel may write and read more than these headers know of. */
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
