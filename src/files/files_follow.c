/*
 * files_follow: reaching a path that exists. openat2 beneath held roots does the work.
 * When openat2 stops with EXDEV at a link that is absolute or climbs out of the root,
 * this file reads the link and starts again at the root that holds the new path.
 */
#include "files/files_inside.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* openat2 answers EAGAIN when a rename elsewhere raced with a ".." in a link. */
enum { OPEN_TRIES = 64 };

static bool is_link(int folder_fd, const char *name)
{
	struct stat st;

	return fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISLNK(st.st_mode);
}

/*
 * The same without openat2, which does not exist for programs in a cell: opens name by
 * name, and answers EXDEV at any link, so that the caller reads the link.
 */
static int open_by_steps(int folder_fd, const char *rest, int flags)
{
	auto_close int at = fcntl(folder_fd, F_DUPFD_CLOEXEC, 3);
	auto_free char *copy = memory_copy(rest);
	char *names = copy;

	while (at >= 0) {
		const char *name = strsep(&names, "/");
		int step = names ? O_PATH | O_DIRECTORY : flags;
		int next = openat(at, name, step | O_NOFOLLOW | O_CLOEXEC);

		if (is_link(at, name)) {
			fd_close(&next);
			errno = EXDEV;
			return -1;
		}
		if (next < 0 || !names)
			return next;
		fd_close(&at);
		at = next;
	}
	return -1;
}

static int open_beneath(int folder_fd, const char *rest, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};

	for (int i = 0; i < OPEN_TRIES; i++) {
		long fd = syscall(SYS_openat2, folder_fd, rest, &how, sizeof(how));

		if (fd < 0 && errno == ENOSYS)
			return open_by_steps(folder_fd, rest, flags);
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			return (int)fd;
	}
	return -1;
}

/*
 * Open ABSOLUTE beneath ROOT. A root may itself be a file, which is then opened again
 * through its descriptor.
 */
static int open_in_root(const struct files_held *root, const char *absolute, int flags)
{
	const char *rest = path_relative(absolute, root->path);
	int fd = open_beneath(root->fd, rest, flags);
	char name[FD_NAME_ROOM];

	if (fd >= 0 || errno != ENOTDIR || strcmp(rest, ".") != 0 || flags & O_DIRECTORY)
		return fd;
	if (flags & O_PATH)
		return fcntl(root->fd, F_DUPFD_CLOEXEC, 3);
	return open(fd_name(root->fd, name), flags | O_CLOEXEC);
}

/*
 * Read the link LINK_FD (O_PATH | O_NOFOLLOW) in FOLDER. OUT becomes its target followed
 * by REST, as a normal path.
 */
static bool link_replace(int link_fd, const char *folder, const char *rest,
			 struct buf *out, bool *absolute)
{
	char target[PATH_MAX];
	struct buf joined;
	ssize_t size = readlinkat(link_fd, "", target, sizeof(target) - 1);
	bool ok;

	if (size < 0)
		return false;
	target[size] = '\0';
	*absolute = target[0] == '/';
	buf_init(&joined, 2 * PATH_MAX);
	ok = buf_addf(&joined, "%s/%s", target, rest);
	buf_clear(out);
	ok = ok && path_normal(folder, joined.data, out);
	buf_fini(&joined);
	if (!ok)
		errno = ENOENT;
	return ok;
}

/*
 * Replace the first link in ABSOLUTE (beneath ROOT) by its target. 1 when there was one,
 * 0 when there is none, -1 with errno.
 */
static int expand_first_link(const struct files_held *root, struct buf *absolute,
			     bool *restart)
{
	auto_close int folder_fd = fcntl(root->fd, F_DUPFD_CLOEXEC, 3);
	auto_free char *copy = memory_copy(path_relative(absolute->data, root->path));
	struct buf folder;
	char *rest = copy;
	int answer = 0;

	buf_init(&folder, PATH_MAX);
	buf_adds(&folder, root->path);
	while (answer == 0 && rest && *rest && strcmp(rest, ".") != 0) {
		const char *name = strsep(&rest, "/");
		auto_close int fd =
			openat(folder_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0) {
			answer = -1;
		} else if (S_ISLNK(st.st_mode)) {
			answer = link_replace(fd, folder.data, rest ? rest : "", absolute,
					      restart)
					 ? 1
					 : -1;
		} else {
			fd_close(&folder_fd);
			folder_fd = fd_take(&fd);
			if (!str_ends(buf_str(&folder), STR("/")))
				buf_addc(&folder, '/');
			buf_adds(&folder, name);
		}
	}
	buf_fini(&folder);
	return answer;
}

/*
 * Open PATH (normal) as the kernel would, but never leaving the roots; PATH becomes the
 * path that was opened.
 */
static int open_following(const struct files *files, struct buf *path, int flags)
{
	int restarts = 0;

	for (int links = 0; links < FILES_LINKS_MAX; links++) {
		const struct files_held *root = files_root_of(files, path->data);
		bool restart = false;
		int fd;
		int expanded;

		if (!root) {
			errno = ENOENT;
			return -1;
		}
		fd = open_in_root(root, path->data, flags);
		if (fd >= 0 || errno != EXDEV)
			return fd;
		expanded = expand_first_link(root, path, &restart);
		if (expanded < 0)
			return -1;
		if (expanded == 0)
			/* a ".." raced with a rename: treat it as leading outside */
			break;
		if ((restart || files_root_of(files, path->data) != root) &&
		    ++restarts > FILES_RESTARTS_MAX) {
			errno = ELOOP;
			return -1;
		}
	}
	errno = ELOOP;
	return -1;
}

/*
 * The real path of FD. When /proc is not available, replace the links in PATH one by one.
 */
static bool real_path(const struct files *files, int fd, const char *path, struct buf *real)
{
	if (fd_real_path(fd, real))
		return true;
	buf_clear(real);
	buf_adds(real, path);
	for (int links = 0; links < FILES_LINKS_MAX; links++) {
		const struct files_held *root = files_root_of(files, real->data);
		bool restart;
		int expanded = root ? expand_first_link(root, real, &restart) : -1;

		if (expanded <= 0)
			return expanded == 0;
	}
	return false;
}

int files_open_real(const struct files *files, const char *absolute, int flags,
		    struct buf *real, const char *shown, struct err *err)
{
	auto_close int fd = -1;
	struct buf path;
	bool reached;

	buf_init(&path, PATH_MAX);
	buf_adds(&path, absolute);
	fd = open_following(files, &path, flags);
	reached = fd >= 0;
	if (!reached)
		files_say(errno == ENODEV ? ENXIO : errno, shown, err);
	else if (!real_path(files, fd, path.data, real) ||
		 !files_root_of(files, real->data) || files_is_blocked(files, real->data))
		reached = files_say_missing(shown, err);
	buf_fini(&path);
	return reached ? fd_take(&fd) : -1;
}
