/*
 * fd: whole reads and writes, removal of folders, messages with descriptors, mount
 * lines.
 */

#include "base/fd.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The most descriptors that one message carries. */
enum { MESSAGE_FDS_MAX = 17 };

enum {
	/* The default capacity of a pipe: there are never more bytes in it. */
	FD_CHUNK = 65536,
	/* The first guess for a file whose size is not known: most files of /proc fit. */
	FD_FIRST = 4096,
};

void fd_auto_close(int *fd)
{
	fd_close(fd);
}

void fd_close(int *fd)
{
	int saved = errno;

	/* Do not repeat this after EINTR: Linux has closed the descriptor even then. */
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = saved;
}

int fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

int fd_of_text(const char *text)
{
	uint64_t number;

	return text_parse_count(text, INT_MAX, &number, NULL) ? (int)number : -1;
}

/* Wait after EAGAIN or EINTR. True when another attempt makes sense. */
static bool fd_wait(int fd, short events)
{
	struct pollfd wait = {.fd = fd, .events = events};

	if (errno == EINTR)
		return true;
	if (errno != EAGAIN)
		return false;
	return poll(&wait, 1, -1) >= 0 || errno == EINTR;
}

/* Returns the bytes read (0 at the end), or -1 with errno. */
static ssize_t fd_read_some(int fd, void *data, size_t size)
{
	for (;;) {
		ssize_t n = read(fd, data, size);

		if (n >= 0 || !fd_wait(fd, POLLIN))
			return n;
	}
}

static off_t fd_known_size(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? st.st_size : 0;
}

/* Read at most MAX bytes, besides the buffer's own ceiling. SIZE is a guess; 0: none. */
static bool fd_read_to(int fd, off_t size, struct buf *buf, size_t max, const char *what,
		       struct err *err)
{
	/* Add one byte, so that the read that finds the end needs no larger buffer. */
	size_t start = buf->size, chunk = size > 0 ? (size_t)size + 1 : FD_FIRST;

	if (max > buf->max - start)
		max = buf->max - start;
	for (;;) {
		size_t room = max - (buf->size - start);
		char probe, *into = &probe;
		size_t wanted = 1;
		ssize_t n;

		if (room) {
			wanted = room < chunk ? room : chunk;
			into = buf_reserve(buf, wanted);
		}
		n = fd_read_some(fd, into, wanted);
		if (n < 0) {
			int code = errno;

			buf_truncate(buf, start);
			return err_set(err, code, "%s: %s", what, strerror(code));
		}
		if (n > 0 && !room) {
			buf_truncate(buf, start);
			buf->overflowed = true;
			return err_set(err, EFBIG,
				       "%s: larger than the %zu bytes taken here", what,
				       max);
		}
		if (n == 0) {
			buf_commit(buf, 0);
			return true;
		}
		buf_commit(buf, (size_t)n);
		/* The end is usually next. Look for it in the room that is left. */
		chunk = buf->capacity - buf->size - 1;
		if (chunk == 0)
			chunk = FD_CHUNK;
	}
}

bool fd_read_all(int fd, struct buf *buf, const char *what, struct err *err)
{
	return fd_read_to(fd, fd_known_size(fd), buf, buf->max, what, err);
}

bool fd_read_looked(int fd, off_t size, struct buf *buf, const char *what, struct err *err)
{
	return fd_read_to(fd, size, buf, buf->max, what, err);
}

bool fd_write_all(int fd, const void *data, size_t size, struct err *err)
{
	const char *at = data;

	while (size) {
		ssize_t n = write(fd, at, size);

		if (n < 0) {
			if (fd_wait(fd, POLLOUT))
				continue;
			return err_set(err, errno, "write: %s", strerror(errno));
		}
		at += n;
		size -= (size_t)n;
	}
	return true;
}

bool fd_write_at(int folder_fd, const char *name, const char *text)
{
	const size_t size = strlen(text);
	auto_close int fd = openat(folder_fd, name, O_WRONLY | O_CLOEXEC);
	ssize_t written;

	if (fd < 0)
		return false;
	written = write(fd, text, size);
	/*
	 * The kernel accepts such a text only as a whole. A short write sets no errno,
	 * so set one.
	 */
	if (written >= 0 && (size_t)written < size)
		errno = EIO;
	return written == (ssize_t)size;
}

bool fd_write_file(const char *path, const char *text, struct err *err)
{
	return fd_write_at(AT_FDCWD, path, text) ||
	       err_set(err, errno, "%s: %s", path, strerror(errno));
}

bool fd_set_blocking(int fd, bool blocking, struct err *err)
{
	int flags = fcntl(fd, F_GETFL);
	int wanted = blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK;

	if (flags < 0 || (flags != wanted && fcntl(fd, F_SETFL, wanted) < 0))
		return err_set(err, errno, "fcntl: %s", strerror(errno));
	return true;
}

int fd_open_output(int fd, bool *is_socket)
{
	char name[FD_NAME_ROOM];
	struct stat st = {0};
	int own = -1;

	if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
		own = open(fd_name(fd, name), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	*is_socket = S_ISSOCK(st.st_mode);
	return own >= 0 ? own : fd;
}

bool fd_pipe(int ends[2], struct err *err)
{
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, errno, "pipe: %s", strerror(errno));
	return true;
}

bool fd_is_pipe(int fd)
{
	struct statfs st;

	return fstatfs(fd, &st) == 0 && st.f_type == PIPEFS_MAGIC;
}

char *fd_name(int fd, char name[FD_NAME_ROOM])
{
	(void)snprintf(name, FD_NAME_ROOM, "/proc/self/fd/%d", fd);
	return name;
}

bool fd_link(int fd, int folder, const char *name)
{
	char own[FD_NAME_ROOM];

	/* Since Linux 6.10 a file that we have opened needs no name in /proc, which takes long. */
	if (linkat(fd, "", folder, name, AT_EMPTY_PATH) == 0)
		return true;
	return errno == ENOENT &&
	       linkat(AT_FDCWD, fd_name(fd, own), folder, name, AT_SYMLINK_FOLLOW) == 0;
}

bool fd_real_path(int fd, struct buf *path)
{
	char name[FD_NAME_ROOM], target[PATH_MAX];
	ssize_t size = readlink(fd_name(fd, name), target, sizeof(target));

	if (size < 0)
		return false;
	if (size == 0 || target[0] != '/') {
		errno = ENOENT;
		return false;
	}
	if (size == (ssize_t)sizeof(target) || (size_t)size > path->max) {
		errno = ENAMETOOLONG;
		return false;
	}
	buf_clear(path);
	return buf_add(path, target, (size_t)size);
}

bool fd_memory_file(const char *name, struct str data, int *fd, struct err *err)
{
	auto_close int file = memfd_create(name, MFD_CLOEXEC);

	if (file < 0)
		return err_set(err, errno, "memfd_create: %s", strerror(errno));
	if (!fd_write_all(file, data.data, data.size, err))
		return err_while(err, "%s", name);
	if (lseek(file, 0, SEEK_SET) < 0)
		return err_set(err, errno, "%s: %s", name, strerror(errno));
	*fd = fd_take(&file);
	return true;
}

bool fd_read_file(const char *path, size_t max, struct buf *buf, struct err *err)
{
	/* Do not block: a FIFO in place of the file must cause an error, not a wait. */
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return err_set(err, EISDIR, "%s: %s", path, strerror(EISDIR));
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "%s: not a regular file", path);
	return fd_read_to(fd, st.st_size, buf, max, path, err);
}

bool fd_replace_file(const char *path, struct str text, struct err *err)
{
	struct buf aside;
	bool fine;

	buf_init(&aside, PATH_MAX);
	(void)buf_addf(&aside, "%s.%d", path, (int)getpid());
	auto_close int fd =
		fd_make_folders(path, err)
			? open(aside.data,
			       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)
			: -1;
	fine = fd >= 0 && fd_write_all(fd, text.data, text.size, err) && fsync(fd) == 0 &&
	       rename(aside.data, path) == 0;
	if (!fine) {
		(void)err_set(err, errno, "%s: %s", path, strerror(errno));
		(void)unlink(aside.data);
	}
	buf_fini(&aside);
	return fine;
}

int fd_lock_beside(const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX];
	int fd = -1;

	(void)snprintf(folder, sizeof(folder), "%.*s",
		       slash != NULL ? (int)(slash - path) + 1 : 1,
		       slash != NULL ? path : ".");
	if (!fd_make_folders(path, err))
		return -1;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX) < 0) {
		(void)err_set(err, errno, "%s: %s", folder, strerror(errno));
		fd_close(&fd);
	}
	return fd;
}

/* Folders that are held. */

enum {
	HOLD_TRIES = 64, /* other processes tidy up only now and then */
	HOLD_RANDOM = 6, /* bytes of a name, as of mkdtemp(3) */
};

/* One try of fd_hold. -1 with errno, ESTALE: the name is that of another folder, or of none. */
static int hold_once(int parent, const char *name, int how)
{
	auto_close int fd =
		openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat held, named;

	if (fd < 0)
		return -1;
	while (flock(fd, how) < 0) {
		if (errno != EINTR)
			return -1;
	}
	if (fstat(fd, &held) < 0)
		return -1;
	if (fstatat(parent, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    held.st_dev == named.st_dev && held.st_ino == named.st_ino)
		return fd_take(&fd);
	errno = ESTALE;
	return -1;
}

int fd_hold(int parent, const char *name, int how, mode_t makes)
{
	for (int i = 0; i < HOLD_TRIES; i++) {
		int fd;

		if (makes != 0 && mkdirat(parent, name, makes) < 0 && errno != EEXIST)
			return -1;
		fd = hold_once(parent, name, how);
		if (fd >= 0 || (errno != ESTALE && (makes == 0 || errno != ENOENT)))
			return fd;
	}
	errno = EBUSY;
	return -1;
}

int fd_hold_new(int parent, char *name, int how, mode_t mode)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	char *end = name + strlen(name) - HOLD_RANDOM;
	unsigned char random[HOLD_RANDOM];

	for (int i = 0; i < HOLD_TRIES; i++) {
		int fd;

		if (getrandom(random, sizeof(random), 0) != sizeof(random))
			return -1;
		for (size_t j = 0; j < sizeof(random); j++)
			end[j] = letters[random[j] % (sizeof(letters) - 1)];
		if (mkdirat(parent, name, mode) < 0) {
			if (errno == EEXIST)
				continue;
			return -1;
		}
		/* Nobody may keep it from its maker, so there is nothing to wait for. */
		fd = hold_once(parent, name, how | LOCK_NB);
		if (fd >= 0)
			return fd;
		/* A process that takes the new folder for one that was left removes it. */
		if (errno != ENOENT && errno != ESTALE && errno != EWOULDBLOCK) {
			const int code = errno;

			(void)unlinkat(parent, name, AT_REMOVEDIR);
			errno = code;
			return -1;
		}
	}
	errno = EBUSY;
	return -1;
}

bool fd_read_at(int folder_fd, const char *name, struct buf *buf)
{
	auto_close int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);

	buf_clear(buf);
	return fd >= 0 && fd_read_all(fd, buf, name, NULL);
}

bool fd_make_folders(const char *path, struct err *err)
{
	auto_free char *copy = memory_copy(path);
	char *last = strrchr(copy, '/');

	/*
	 * Usually all folders exist. Then one access() is cheaper than a mkdir() for
	 * each folder, which locks the folder above before it returns EEXIST.
	 */
	if (last != NULL && last != copy) {
		*last = '\0';
		if (access(copy, F_OK) == 0)
			return true;
		*last = '/';
	}
	for (char *at = strchr(copy + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
		*at = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST)
			return err_set(err, errno, "%s: %s", copy, strerror(errno));
		*at = '/';
	}
	return true;
}

DIR *fd_open_names(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd >= 0 ? fdopendir(fd) : NULL;

	if (names == NULL)
		fd_close(&fd);
	return names;
}

void fd_names_read(struct fd_names *names, int folder, size_t max, bool hidden)
{
	DIR *dir = fd_open_names(folder);
	struct dirent *entry;

	*names = (struct fd_names){.items = memory_array(max, sizeof(char *))};
	while (dir != NULL && names->count < max && (entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    (hidden || entry->d_name[0] != '.'))
			names->items[names->count++] = memory_copy(entry->d_name);
	}
	if (dir != NULL)
		(void)closedir(dir);
	str_sort(names->items, names->count);
}

void fd_names_fini(struct fd_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->items[i]);
	free(names->items);
}

bool fd_folder_is_empty(int folder)
{
	DIR *names = fd_open_names(folder);
	const struct dirent *entry = NULL;
	bool is_read;

	if (names == NULL)
		return false;
	do {
		errno = 0;
		entry = readdir(names);
	} while (entry != NULL &&
		 (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
	is_read = errno == 0;
	(void)closedir(names);
	return entry == NULL && is_read;
}

int fd_open_beneath(int folder, const char *name, int flags)
{
	/* openat2(2) refuses O_NONBLOCK and O_NOCTTY together with O_PATH. */
	const int calm = (flags & O_PATH) != 0 ? 0 : O_NONBLOCK | O_NOCTTY;
	const struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | calm | O_CLOEXEC | O_NOFOLLOW),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, folder, name, &how, sizeof(how));
}

/* Walks a folder by descriptors and removes everything in it. */

/*
 * The walk holds one descriptor for each level. A folder that is nested more deeply, on
 * purpose, is moved up, and removed from there; so is one for which no descriptor is left. Two
 * descriptors are enough.
 */
enum { DEPTH_MAX = 200 };

struct removal {
	int top;        /* the folder in which the walk began */
	unsigned moved; /* folders that were moved to it */
};

static int folder_open(int parent, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(parent, name, flags);

	/* The owner of the folder may have removed their own permissions. */
	if (fd < 0 && errno == EACCES && fchmodat(parent, name, S_IRWXU, 0) == 0)
		fd = openat(parent, name, flags);
	return fd;
}

static int remove_below(struct removal *removal, int parent, const char *name, int depth);

/*
 * Move the folder ENTRY of the open folder FD to the top, under a name that a command
 * cannot have taken before.
 */
static void move_up(struct removal *removal, int fd, const char *entry)
{
	char up[NAME_MAX + 1];
	uint64_t number;
	struct stat st;

	/* The kernel moves only a folder that the owner may change. */
	if (fstatat(fd, entry, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) ||
	    fchmodat(fd, entry, S_IRWXU, 0) < 0 ||
	    getrandom(&number, sizeof(number), 0) != sizeof(number))
		return;
	(void)snprintf(up, sizeof(up), ".glovebox-deep-%016" PRIx64, number);
	removal->moved += renameat(fd, entry, removal->top, up) == 0;
}

/* Remove ENTRY of the open folder FD, with everything below it. */
static void remove_entry(struct removal *removal, int fd, const char *entry, int depth)
{
	if (unlinkat(fd, entry, 0) == 0 ||
	    (errno == EACCES && fchmod(fd, S_IRWXU) == 0 && unlinkat(fd, entry, 0) == 0))
		return;
	if (depth >= DEPTH_MAX ||
	    (remove_below(removal, fd, entry, depth + 1) == EMFILE && depth > 0))
		move_up(removal, fd, entry);
}

/* Returns 0, or the error of the kernel that opens no folder NAME of PARENT. */
static int remove_below(struct removal *removal, int parent, const char *name, int depth)
{
	int fd = folder_open(parent, name);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	unsigned moved;

	if (folder == NULL) {
		const int error = errno;

		fd_close(&fd);
		return error;
	}
	if (depth == 0)
		removal->top = fd;
	do {
		moved = removal->moved;
		rewinddir(folder);
		for (struct dirent *entry = readdir(folder); entry != NULL;
		     entry = readdir(folder)) {
			if (strcmp(entry->d_name, ".") != 0 &&
			    strcmp(entry->d_name, "..") != 0)
				remove_entry(removal, fd, entry->d_name, depth);
		}
	} while (depth == 0 && removal->moved != moved);
	(void)closedir(folder);
	(void)unlinkat(parent, name, AT_REMOVEDIR);
	return 0;
}

void fd_folder_remove_at(int parent, const char *name)
{
	struct removal removal = {.top = -1};

	(void)remove_below(&removal, parent, name, 0);
}

void fd_folder_remove(const char *path)
{
	if (path != NULL)
		fd_folder_remove_at(AT_FDCWD, path);
}

/* Sends and receives descriptors with SCM_RIGHTS (unix(7)). */

union rights {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX)];
};

bool fd_message_send(int socket, const void *data, size_t size, const int *fds,
		     size_t count, int flags)
{
	union rights rights = {0};
	struct iovec part = {(void *)(uintptr_t)data, size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t n;

	assert(count <= MESSAGE_FDS_MAX);
	if (count > 0) {
		message.msg_control = rights.bytes;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
	}
	do {
		n = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)size;
}

/* Store the descriptors of MESSAGE in CAME; places without one become -1. */
static void take_rights(struct msghdr *message, int came[MESSAGE_FDS_MAX])
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);

	for (size_t i = 0; i < MESSAGE_FDS_MAX; i++)
		came[i] = -1;
	if (header != NULL && header->cmsg_level == SOL_SOCKET &&
	    header->cmsg_type == SCM_RIGHTS)
		memcpy(came, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
}

/*
 * Receive one message. When the other end has closed with unread messages, the kernel
 * reports ECONNRESET once, before the last messages of the other end. So try again
 * then.
 */
static ssize_t receive(int socket, struct msghdr *message, int flags)
{
	bool reset = false, again;
	ssize_t n;

	do {
		n = recvmsg(socket, message, flags);
		again = n < 0 && (errno == EINTR || (errno == ECONNRESET && !reset));
		reset = reset || (n < 0 && errno == ECONNRESET);
	} while (again);
	return n;
}

bool fd_message_receive_some(int socket, void *data, size_t max, size_t *size, int *fds,
			     size_t count, int flags)
{
	union rights rights = {0};
	struct iovec part = {data, max};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = rights.bytes,
				 .msg_controllen = sizeof(rights.bytes)};
	int came[MESSAGE_FDS_MAX];
	ssize_t n;

	assert(count <= MESSAGE_FDS_MAX);
	for (size_t i = 0; i < count; i++)
		fds[i] = -1;
	n = receive(socket, &message, flags | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return false;
	take_rights(&message, came);
	bool whole = n > 0 && (message.msg_flags & MSG_TRUNC) == 0;
	for (size_t i = 0; whole && i < count; i++)
		fds[i] = fd_take(&came[i]);
	for (size_t i = 0; i < MESSAGE_FDS_MAX; i++)
		fd_close(&came[i]);
	*size = (size_t)n;
	if (!whole)
		errno = ECONNRESET;
	return whole;
}

bool fd_message_receive(int socket, void *data, size_t size, int *fds, size_t count,
			int flags)
{
	size_t got;

	if (!fd_message_receive_some(socket, data, size, &got, fds, count, flags))
		return false;
	if (got == size)
		return true;
	for (size_t i = 0; i < count; i++)
		fd_close(&fds[i]);
	errno = ECONNRESET;
	return false;
}

/* Splits one line of mountinfo into words, in one pass. */

/* "31 23 0:28 ROOT POINT OPTIONS … - TYPE SOURCE SUPER" */
enum { FIELD_ROOT = 3, FIELD_POINT = 4, TYPE_AFTER_DASH = 1, SUPER_AFTER_DASH = 3 };

/* False when LINE ends before the mount point. */
static bool parse(struct str line, struct mount *mount)
{
	int dash = -1;
	struct str word;

	*mount = (struct mount){0};
	for (int i = 0; str_next_word(&line, &word); i++) {
		if (i == FIELD_ROOT)
			mount->root = word;
		else if (i == FIELD_POINT)
			mount->point = word;
		else if (dash < 0 && i > FIELD_POINT && str_is(word, "-"))
			dash = i;
		else if (dash >= 0 && i == dash + TYPE_AFTER_DASH)
			mount->type = word;
		else if (dash >= 0 && i == dash + SUPER_AFTER_DASH)
			mount->super = word;
	}
	return mount->point.size > 0;
}

bool fd_mounts_next(struct str *rest, struct mount *mount)
{
	struct str line;

	while (str_next_line(rest, &line)) {
		if (parse(line, mount))
			return true;
	}
	return false;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

bool fd_mounts_add_path(struct str path, struct buf *out)
{
	for (size_t i = 0; i < path.size; i++) {
		const char *at = path.data + i;
		char byte = *at;

		if (byte == '\\' && path.size - i > 3 && is_octal(at[1]) &&
		    is_octal(at[2]) && is_octal(at[3])) {
			byte = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 |
				      (at[3] - '0'));
			i += 3;
		}
		if (!buf_addc(out, byte))
			return false;
	}
	return true;
}
