/*
 * files: reaching what exists. openat2 beneath held roots does the work; where it stops
 * at a link that is absolute or climbs (EXDEV), the link is read here and the path starts
 * again at the root that holds it.
 */
#include "runtime/files.h"
#include "runtime/files_inside.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/pattern.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* openat2 answers EAGAIN when a rename elsewhere raced with a ".." in a link. */
enum { OPEN_TRIES = 64 };

void file_init(struct file *file)
{
	memset(file, 0, sizeof(*file));
	file->fd = -1;
	buf_init(&file->path, PATH_MAX);
}

void file_fini(struct file *file)
{
	if (!file)
		return;
	fd_close(&file->fd);
	buf_fini(&file->path);
}

static bool root_open(const struct files_root *root, struct files_held *held, struct err *err)
{
	held->path = memory_copy(root->path);
	held->pattern = memory_copy(root->pattern);
	held->writable = root->writable;
	held->fd = open(root->path, O_PATH | O_CLOEXEC);
	if (held->fd < 0)
		return err_set(err, errno, "%s: %s", root->path, strerror(errno));
	return true;
}

bool files_open(const struct files_root *roots, size_t count, const char *workspace,
		const char *const *blocked, struct files **files, struct err *err)
{
	struct files *made = memory_alloc(sizeof(*made));
	size_t blocked_count = 0;

	made->roots = memory_array(count, sizeof(*made->roots));
	made->workspace = memory_copy(workspace);
	while (blocked && blocked[blocked_count])
		blocked_count++;
	made->blocked = memory_array(blocked_count + 1, sizeof(*made->blocked));
	for (size_t i = 0; i < blocked_count; i++)
		made->blocked[i] = memory_copy(blocked[i]);
	for (size_t i = 0; i < count; i++) {
		made->root_count = i + 1;
		if (!root_open(&roots[i], &made->roots[i], err)) {
			files_close(made);
			return false;
		}
	}
	*files = made;
	return true;
}

void files_close(struct files *files)
{
	if (!files)
		return;
	for (size_t i = 0; i < files->root_count; i++) {
		fd_close(&files->roots[i].fd);
		free(files->roots[i].path);
		free(files->roots[i].pattern);
	}
	for (char **at = files->blocked; *at; at++)
		free(*at);
	free(files->roots);
	free(files->blocked);
	free(files->workspace);
	free(files);
}

const char *files_workspace(const struct files *files)
{
	return files->workspace;
}

const char *files_shown(const struct files *files, const char *path)
{
	return path_relative(path, files->workspace);
}

bool files_say_missing(const char *shown, struct err *err)
{
	return err_set(err, ENOENT,
		       "%s does not exist, or lies outside of what this agent may reach.",
		       shown);
}

bool files_say(int code, const char *shown, struct err *err)
{
	switch (code) {
	case ENOENT:
		return files_say_missing(shown, err);
	case EISDIR:
		return err_set(err, code, "%s is a folder, not a file.", shown);
	case ENOTDIR:
		return err_set(err, code,
			       "%s: a part of this path is a file, not a folder.", shown);
	case ELOOP:
		return err_set(err, code, "%s: its symbolic links lead in a circle.", shown);
	case EACCES:
	case EPERM:
		return err_set(err, code, "%s: permission denied.", shown);
	case ENXIO:
		return err_set(err, code,
			       "%s is neither a regular file nor a folder (a FIFO, socket "
			       "or device) and is never opened.",
			       shown);
	case ENAMETOOLONG:
		return err_set(err, code,
			       "The path is too long: at most %d bytes, and %d "
			       "for each name.",
			       PATH_MAX - 1, NAME_MAX);
	case EROFS:
		return err_set(err, code, "%s may not be written: it is read-only here.",
			       shown);
	default:
		return err_set(err, code, "%s: %s.", shown, strerror(code));
	}
}

bool files_normal(const struct files *files, const char *path, struct buf *out,
		  struct err *err)
{
	if (!*path)
		return err_set(err, ENOENT, "The path is empty.");
	if (strlen(path) >= PATH_MAX)
		return files_say(ENAMETOOLONG, path, err);
	buf_clear(out);
	if (path_normal(files->workspace, path, out))
		return true;
	if (out->overflowed)
		return files_say(ENAMETOOLONG, path, err);
	return files_say_missing(path, err);
}

bool files_is_blocked(const struct files *files, const char *real)
{
	for (char **at = files->blocked; *at; at++) {
		if (path_within(real, *at))
			return true;
	}
	return false;
}

const struct files_held *files_root_of(const struct files *files, const char *absolute)
{
	const struct files_held *best = NULL;

	for (size_t i = 0; i < files->root_count; i++) {
		const struct files_held *root = &files->roots[i];

		if (!path_within(absolute, root->path))
			continue;
		if (!best || strlen(root->path) > strlen(best->path))
			best = root;
	}
	return best;
}

/* Of the deepest roots: what is read-only in a writable folder is read-only. */
bool files_is_writable(const struct files *files, const char *real)
{
	const struct files_held *deepest = files_root_of(files, real);

	for (size_t i = 0; deepest && i < files->root_count; i++) {
		const struct files_held *root = &files->roots[i];

		if (!root->writable || strcmp(root->path, deepest->path) != 0)
			continue;
		if (!root->pattern || pattern_match(str_of(root->pattern),
						    str_of(path_relative(real, root->path)),
						    PATTERN_BASENAME))
			return true;
	}
	return false;
}

static bool is_link(int folder_fd, const char *name)
{
	struct stat st;

	return fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISLNK(st.st_mode);
}

/*
 * The same where openat2 does not exist, as for programs in a cell: name by name, and a link
 * anywhere is EXDEV, so that the caller reads it.
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
 * Open ABSOLUTE beneath ROOT. A root may itself be a file: then it is opened anew by its
 * descriptor.
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
 * Read the link that LINK_FD is (O_PATH | O_NOFOLLOW): its target with what follows it,
 * seen from FOLDER.
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
 * Open PATH (normal) as the kernel would, but never leaving the roots; PATH becomes what
 * was opened.
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
			break; /* a "..", raced with a rename: as if it led outside */
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
 * The path FD really has. Where /proc is not granted, links are taken out of PATH one by
 * one.
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

/*
 * Would opening ABSOLUTE for reading touch a FIFO or device? Only a hint (links may be
 * exchanged between this and the open, which is non-blocking): it spares a writer that
 * waits at a FIFO a reader that goes away.
 */
static bool is_special(const struct files *files, const char *absolute)
{
	const struct files_held *root = files_root_of(files, absolute);
	struct stat st;

	if (!root || fstatat(root->fd, path_relative(absolute, root->path), &st, 0) < 0)
		return false;
	return !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

/* A missing path in a workspace that is gone deserves its own sentence. */
static bool say_workspace_gone(const struct files *files, struct err *err)
{
	const struct files_held *root = files_root_of(files, files->workspace);
	struct stat st;

	if (!root || strcmp(root->path, files->workspace) != 0 ||
	    fstat(root->fd, &st) < 0 || st.st_nlink > 0)
		return false;
	return err_set(err, ENOENT,
		       "The workspace %s is gone: it was deleted while in use. "
		       "Nothing can be read or written until a new session opens it.",
		       files->workspace);
}

static bool reach_normal(const struct files *files, const char *path, const char *absolute,
			 enum files_want want, struct file *file, struct err *err)
{
	static const int flags[] = {
		[FILES_READ] = O_RDONLY | O_NONBLOCK | O_NOCTTY,
		[FILES_FOLDER] = O_RDONLY | O_DIRECTORY,
		[FILES_ANY] = O_PATH,
	};
	bool special = want == FILES_READ && is_special(files, absolute);

	file->fd = files_open_real(files, absolute, special ? O_PATH : flags[want],
				   &file->path, path, err);
	if (file->fd < 0)
		return false;
	if (fstat(file->fd, &file->st) < 0)
		return files_say(errno, path, err);
	if (want == FILES_READ && S_ISDIR(file->st.st_mode))
		return files_say(EISDIR, path, err);
	if (want == FILES_READ && (special || !S_ISREG(file->st.st_mode)))
		return files_say(ENXIO, path, err);
	return true;
}

bool files_reach(struct files *files, const char *path, enum files_want want,
		 struct file *file, struct err *err)
{
	struct err why = {0};
	struct buf absolute;
	bool reached;

	fd_close(&file->fd);
	buf_init(&absolute, PATH_MAX);
	reached = files_normal(files, path, &absolute, &why) &&
		  reach_normal(files, path, absolute.data, want, file, &why);
	buf_fini(&absolute);
	if (reached)
		return true;
	fd_close(&file->fd);
	if (why.code == ENOENT)
		(void)say_workspace_gone(files, &why);
	return err_set(err, why.code, "%s", why.text);
}

int files_open_below(int folder_fd, const char *name, enum files_want want)
{
	int flags = O_NOFOLLOW | O_CLOEXEC;
	struct stat st;
	auto_close int fd = -1;

	if (want == FILES_FOLDER)
		return openat(folder_fd, name, flags | O_RDONLY | O_DIRECTORY);
	if (want == FILES_ANY)
		return openat(folder_fd, name, flags | O_PATH);
	fd = openat(folder_fd, name, flags | O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		fd_close(&fd);
		errno = S_ISDIR(st.st_mode) ? EISDIR : ENXIO;
		return -1;
	}
	return fd_take(&fd);
}
