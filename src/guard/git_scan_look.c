/*
 * git_scan_look: how a scan opens and reads names. All files that a scan meets may be
 * hostile.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "guard/git_scan_parts.h"
#include "guard/readers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* openat2 answers EAGAIN when it races with a rename elsewhere. */
enum { OPEN_TRIES = 64, NAMES_READ = 4096 };

bool look_trouble(const struct scan_look *look, int code, const char *name)
{
	struct err *trouble = &look->scan->trouble;

	if (trouble->text[0] == '\0')
		(void)err_set(trouble, code, "%s/%s: %s", look->path, name, strerror(code));
	return false;
}

static int open_below(int at, const char *name, int flags)
{
	const struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd = -1;

	for (int i = 0; i < OPEN_TRIES; i++) {
		fd = syscall(SYS_openat2, at, name, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return (int)fd;
}

static bool budget(const struct scan_look *look)
{
	if (look->scan->looks++ < GIT_SCAN_LOOKS)
		return true;
	return look_trouble(look, E2BIG, "");
}

/*
 * Make NAME accessible to its owner. A folder or file without rights for the owner would
 * be hidden from the scan, but the user may make it accessible later. Only NAME itself is
 * changed, never the target of a symlink.
 */
static void mend(const struct scan_look *look, const char *name, mode_t mode)
{
	struct stat st;

	if (fstatat(look->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(st.st_mode))
		(void)!fchmodat(look->fd, name, folder_mode_opened(st.st_mode, mode), 0);
}

static bool is_absence(int code)
{
	return code == ENOENT || code == ENOTDIR || code == ELOOP || code == EXDEV;
}

static int open_part(const struct scan_look *look, const char *name, int flags, mode_t mode)
{
	int fd = open_below(look->fd, name, flags);

	if (fd < 0 && errno == EACCES && look->scan->may_mend) {
		mend(look, name, mode);
		fd = open_below(look->fd, name, flags);
	}
	return fd;
}

/*
 * Is NAME inaccessible to us, and may we not change that? Then no command of the cell
 * could put a file there. The owner's number is not enough to decide: owners without a
 * mapping have the number of the user nobody, which may also be ours. So the kernel is
 * asked by a chmod.
 */
static bool is_somebodys(const struct scan_look *look, const char *name)
{
	struct stat st;

	return !look->scan->may_mend ||
	       (fstatat(look->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		(st.st_uid != geteuid() ||
		 (fchmodat(look->fd, name, folder_mode_opened(st.st_mode, 0), 0) < 0 &&
		  errno == EPERM)));
}

static int open_folder(const struct scan_look *look, const char *name)
{
	auto_free char *copy = memory_copy(name);
	auto_close int at = fcntl(look->fd, F_DUPFD_CLOEXEC, 0);
	char *rest = copy;

	while (at >= 0 && rest != NULL) {
		const struct scan_look here = {look->scan, at, look->path};
		const char *part = strsep(&rest, "/");

		if (!budget(look))
			return -1;
		int next = open_part(&here, part, O_RDONLY | O_DIRECTORY, S_IRWXU);
		if (next < 0) {
			int code = errno;
			if (!is_absence(code) &&
			    !(code == EACCES && is_somebodys(&here, part)))
				(void)look_trouble(look, code, name);
			return -1;
		}
		fd_close(&at);
		at = next;
	}
	return fd_take(&at);
}

int look_enter(const struct scan_look *look, const char *name, char path[PATH_MAX])
{
	if (snprintf(path, PATH_MAX, "%s/%s", look->path, name) >= PATH_MAX)
		return -1;
	return open_folder(look, name);
}

int look_open_path(struct git_scan *scan, const char *path)
{
	for (size_t i = 0; i < scan->root_count; i++) {
		const struct git_scan_root *root = &scan->roots[i];
		const struct scan_look look = {scan, root->fd, root->path};

		if (path_within(path, root->path))
			return open_folder(&look, path_relative(path, root->path));
	}
	errno = EXDEV;
	return -1;
}

int look_open_whole(struct git_scan *scan, const struct git_scan_root *root, const char *path)
{
	const struct scan_look look = {scan, root->fd, root->path};
	const char *name = path_relative(path, root->path);

	if (!budget(&look))
		return -1;
	int fd = open_below(root->fd, name, O_RDONLY | O_DIRECTORY);
	/*
	 * Going step by step, inaccessible folders can be opened to the owner, or an
	 * error is reported.
	 */
	if (fd < 0 && errno == EACCES)
		return open_folder(&look, name);
	if (fd < 0 && !is_absence(errno))
		(void)look_trouble(&look, errno, name);
	return fd;
}

bool look_may_hold(const struct scan_look *look, const char *folder, const char *name)
{
	char path[2 * NAME_MAX + 2];
	struct stat st;

	if (!budget(look) ||
	    snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return true;
	return fstatat(look->fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 || !is_absence(errno);
}

/* A folder may be inaccessible to its owner though its names may be read. */
static bool mend_folder(const struct scan_look *look)
{
	struct stat st;

	return look->scan->may_mend && fstat(look->fd, &st) == 0 &&
	       fchmod(look->fd, folder_mode_opened(st.st_mode, S_IRWXU)) == 0;
}

bool look_stat(const struct scan_look *look, const char *name, struct stat *st)
{
	if (!budget(look))
		return false;
	if (fstatat(look->fd, name, st, AT_SYMLINK_NOFOLLOW) == 0 ||
	    (errno == EACCES && mend_folder(look) &&
	     fstatat(look->fd, name, st, AT_SYMLINK_NOFOLLOW) == 0))
		return true;
	if (!is_absence(errno) && errno != EACCES)
		(void)look_trouble(look, errno, name);
	return false;
}

enum look_found look_read(const struct scan_look *look, const char *name, size_t max,
			  struct buf *content, struct stat *st)
{
	struct err err;

	buf_clear(content);
	if (!look_stat(look, name, st))
		return LOOK_ABSENT;
	if (!S_ISREG(st->st_mode) || st->st_size > (off_t)max)
		return LOOK_ODD;
	auto_close int fd = open_part(look, name, O_RDONLY, S_IRUSR);
	if (fd < 0 && errno == ENOENT)
		return LOOK_ABSENT;
	if (fd < 0 || fstat(fd, st) < 0 || !S_ISREG(st->st_mode))
		return LOOK_ODD;
	return fd_read_all(fd, content, name, &err) ? LOOK_READ : LOOK_ODD;
}

bool look_is_late(struct git_scan *scan)
{
	if (scan->deadline_ms == 0 || clock_now_ms() < scan->deadline_ms)
		return false;
	scan->partial = true;
	return true;
}

bool look_is_aside(const char *name)
{
	return strstr(name, GIT_QUARANTINE) != NULL;
}

bool look_is_straight(const char *text)
{
	bool named = text[0] == '/';

	while (*text != '\0') {
		const size_t size = strcspn(text, "/");
		const bool up = size == 2 && text[0] == '.' && text[1] == '.';

		if (up && named)
			return false;
		named = named || (size > 0 && !up && (size > 1 || text[0] != '.'));
		text += size;
		text += *text == '/';
	}
	return true;
}

bool look_line_path(const struct scan_look *look, const char *name, const char *from,
		    struct buf *path)
{
	struct buf text;
	struct stat st;
	struct str line;
	bool fine;

	buf_init(&text, GIT_POINTER_MAX);
	fine = look_read(look, name, GIT_POINTER_MAX, &text, &st) == LOOK_READ &&
	       git_text_line(buf_str(&text), &line);
	if (fine) {
		auto_free char *copy = memory_copy_str(line);
		buf_clear(path);
		fine = look_is_straight(copy) && path_normal(from, copy, path);
	}
	buf_fini(&text);
	return fine;
}

/* Call EACH for NAME. False: the ceiling is reached. */
static bool name_give(struct scan_look *here, const char *name, int type,
		      void (*each)(const struct scan_look *look, const char *name,
				   void *context),
		      void *context)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return true;
	if (here->scan->names++ >= GIT_SCAN_NAMES)
		return look_trouble(here, E2BIG, ".");
	here->type = type;
	each(here, name, context);
	return true;
}

static int open_names(const struct scan_look *look)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int fd = openat(look->fd, ".", flags);

	if (fd < 0 && errno == EACCES && mend_folder(look))
		fd = openat(look->fd, ".", flags);
	return fd;
}

void look_names(const struct scan_look *look,
		void (*each)(const struct scan_look *look, const char *name, void *context),
		void *context)
{
	/* The kernel's records, without the 32 KiB of the C library's reader. */
	_Alignas(struct dirent64) char bytes[NAMES_READ];
	auto_close int fd = open_names(look);
	struct scan_look here = *look;
	ssize_t size = -1;
	bool more = fd >= 0;

	while (more && (size = getdents64(fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t at = 0; more && at < size;) {
			const struct dirent64 *entry = (const void *)(bytes + at);

			more = name_give(&here, entry->d_name, entry->d_type, each, context);
			at += entry->d_reclen;
		}
		more = more && !look_is_late(look->scan);
	}
	if (size < 0)
		(void)look_trouble(look, errno, ".");
}
