/*
 * files: holds the roots open, decides what may be done below them, reaches existing
 * files, and suggests names for missing ones.
 */

#include "files/files.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/pattern.h"
#include "base/text/text.h"
#include "base/value.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Bounds of files_add_near: its time, and the names that it suggests. */
enum { FILES_NEAR_MS = 200, FILES_NEAR_MAX = 3 };

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

void files_mark(struct str content, const struct stat *st, char mark[FILES_MARK])
{
	uint64_t size = st ? (uint64_t)st->st_size : content.size;

	if (size <= FILES_HASHED_MAX || !st) {
		hash_mark(content, mark);
		return;
	}
	(void)snprintf(mark, FILES_MARK,
		       "stat:%" PRIx64 ":%" PRIx64 ":%" PRIx64 ".%09ld:%" PRIx64 ".%09ld",
		       (uint64_t)st->st_ino, size, (uint64_t)st->st_mtim.tv_sec,
		       st->st_mtim.tv_nsec, (uint64_t)st->st_ctim.tv_sec,
		       st->st_ctim.tv_nsec);
}

static bool root_open(const struct files_root *root, struct files_held *held, struct err *err)
{
	held->path = memory_copy(root->path);
	held->pattern = memory_copy(root->pattern);
	held->writable = root->writable;
	held->passing = root->passing;
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
	made->replaced = -1;
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
	files_settle(files);
	free(files->roots);
	free(files->blocked);
	free(files->workspace);
	free(files->at);
	free(files);
}

void files_settle(struct files *files)
{
	fd_close(&files->replaced);
}

void files_stand_at(struct files *files, const char *at)
{
	free(files->at);
	files->at = at != NULL ? memory_copy(at) : NULL;
}

void files_own(const struct files *files, struct buf *path)
{
	if (files->at != NULL)
		(void)path_move(path, files->at, files->workspace);
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

bool files_say_no_folder(const char *shown, struct err *err)
{
	return err_set(err, ENOTDIR, "%s is a file, not a folder. %s", shown,
		       files_asks_folder(shown) ? "Name it without the slash behind it."
						: "Name a folder.");
}

bool files_normal(const struct files *files, const char *path, struct buf *out,
		  struct err *err)
{
	if (!*path)
		return err_set(err, ENOENT, "The path is empty.");
	if (strlen(path) >= PATH_MAX)
		return files_say(ENAMETOOLONG, path, err);
	buf_clear(out);
	if (path_normal(files->workspace, path, out)) {
		files_own(files, out);
		return true;
	}
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

bool files_is_root(const struct files *files, const char *path)
{
	for (size_t i = 0; i < files->root_count; i++) {
		if (strcmp(files->roots[i].path, path) == 0)
			return true;
	}
	return false;
}

bool files_is_passing(const struct files *files, const char *path)
{
	const struct files_held *deepest = files_root_of(files, path);

	/*
	 * When two roots have the same path, the one whose files stay wins, as in the
	 * view.
	 */
	for (size_t i = 0; deepest && i < files->root_count; i++) {
		const struct files_held *root = &files->roots[i];

		if (strcmp(root->path, deepest->path) == 0 && root->writable &&
		    !root->passing)
			return false;
	}
	return deepest && deepest->passing;
}

/* The deepest root decides: a read-only folder inside a writable one is read-only. */
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

void files_add_writable(const struct files *files, struct buf *out)
{
	size_t total = 0, listed = 0;

	for (size_t i = 0; i < files->root_count; i++)
		total += files->roots[i].writable &&
			 path_within(files->roots[i].path, files->workspace);
	for (size_t i = 0; i < files->root_count && listed < FILES_LISTED; i++) {
		const struct files_held *root = &files->roots[i];

		if (!root->writable || !path_within(root->path, files->workspace))
			continue;
		if (listed++ > 0)
			(void)buf_adds(out, listed == total ? " and " : ", ");
		if (root->pattern)
			(void)buf_addf(out, "%s in ", root->pattern);
		if (strcmp(root->path, files->workspace) == 0)
			(void)buf_adds(out, "the workspace");
		else
			text_add_name(out,
				      str_of(path_relative(root->path, files->workspace)));
	}
	if (total > listed)
		(void)buf_addf(out, " and %zu more", total - listed);
	if (total == 0)
		(void)buf_adds(out, "nothing in the workspace");
}

/*
 * Would opening ABSOLUTE for reading touch a FIFO or device? This is only a hint, because
 * links may change before the open, which is non-blocking anyway. The hint spares a
 * writer that waits at a FIFO: without it, a reader would appear and leave.
 */
static bool is_special(const struct files *files, const char *absolute)
{
	const struct files_held *root = files_root_of(files, absolute);
	struct stat st;

	if (!root || fstatat(root->fd, path_relative(absolute, root->path), &st, 0) < 0)
		return false;
	return !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

/* When the workspace itself was deleted, say that instead of naming a missing path. */
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

/* Does ABSOLUTE lead to an existing file of any kind? */
static bool is_there(const struct files *files, const char *absolute, const char *shown)
{
	struct buf real;
	struct err err;

	buf_init(&real, PATH_MAX);
	auto_close int fd = files_open_real(files, absolute, O_PATH, &real, shown, &err);
	buf_fini(&real);
	return fd >= 0;
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
	if (file->fd < 0 && want == FILES_FOLDER && err->code == ENOTDIR &&
	    is_there(files, absolute, path))
		return files_say_no_folder(path, err);
	if (file->fd < 0)
		return false;
	if (fstat(file->fd, &file->st) < 0)
		return files_say(errno, path, err);
	if (!S_ISDIR(file->st.st_mode) && files_asks_folder(path))
		return files_say_no_folder(path, err);
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

int files_open_regular(int folder_fd, const char *name, struct stat *st)
{
	auto_close int fd =
		openat(folder_fd, name,
		       O_NOFOLLOW | O_CLOEXEC | O_RDONLY | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, st) < 0)
		return -1;
	if (!S_ISREG(st->st_mode)) {
		fd_close(&fd);
		errno = S_ISDIR(st->st_mode) ? EISDIR : ENXIO;
		return -1;
	}
	return fd_take(&fd);
}

int files_open_below(int folder_fd, const char *name, enum files_want want)
{
	int flags = O_NOFOLLOW | O_CLOEXEC;
	struct stat st;

	if (want == FILES_FOLDER)
		return openat(folder_fd, name, flags | O_RDONLY | O_DIRECTORY);
	if (want == FILES_ANY)
		return openat(folder_fd, name, flags | O_PATH);
	return files_open_regular(folder_fd, name, &st);
}

/*
 * Reaches a path that exists. openat2 beneath held roots does the work. When openat2
 * stops with EXDEV at a link that is absolute or climbs out of the root, the code reads
 * the link and starts again at the root that holds the new path.
 */

/* openat2 answers EAGAIN when a rename elsewhere raced with a ".." in a link. */
enum { OPEN_TRIES = 64 };

static bool is_link(int folder_fd, const char *name)
{
	struct stat st;

	return fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISLNK(st.st_mode);
}

/*
 * Open REST below FOLDER_FD name by name, for programs in a cell, which have no
 * openat2. Fails with EXDEV at any link, so that the caller reads the link.
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
		files_own(files, path);
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
	if (fd_real_path(fd, real)) {
		files_own(files, real);
		return true;
	}
	buf_clear(real);
	buf_adds(real, path);
	for (int links = 0; links < FILES_LINKS_MAX; links++) {
		files_own(files, real);
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

/* Writes the content that a file tool is about to replace to the log of the call. */

void files_keep(struct files *files, struct undo_log *log)
{
	files->log = log;
}

void files_note_heads(struct files *files, struct value *list)
{
	files->heads = list;
}

void files_note_written(struct files *files, struct value *list)
{
	files->written = list;
}

/*
 * Suggests names for a missing path: the same base name elsewhere in the workspace, the
 * path without its leading slash, or the nearest names. The walk is short and bounded;
 * no link is followed, and only folders are opened.
 */

enum {
	/* folders that wait to be read: bounds the memory of the walk */
	NEAR_FOLDERS_MAX = 20000,
	NEAR_CLOCK_EVERY = 64, /* names between two looks at the clock */
	NEAR_DISTANCE_MAX = 3, /* edits between two names that still count as a slip */
};

struct near_name {
	char *path;
	size_t distance; /* 0: the same base name */
	bool beside;     /* in the folder of the missing path */
};

struct near {
	struct files *files;
	struct str wanted;
	/* the missing path itself, which may be the name of a dangling link */
	const char *self;
	struct str folder; /* the folder of `self`; empty: the workspace */
	bool is_link;
	char **folders; /* relative to the workspace; a queue: near the top first */
	size_t folder_count, folder_at;
	struct near_name found[FILES_NEAR_MAX];
	size_t found_count;
	int64_t deadline_ms;
	unsigned seen;
};

/* Blocked names are not suggested, because they count as missing. */
static bool near_is_blocked(const struct near *near, const char *path)
{
	struct buf absolute;
	bool blocked = true;

	buf_init(&absolute, PATH_MAX);
	if (path_normal(near->files->workspace, path, &absolute))
		blocked = files_is_blocked(near->files, absolute.data);
	buf_fini(&absolute);
	return blocked;
}

static bool near_before(const struct near_name *a, const struct near_name *b)
{
	size_t a_depth = path_depth(a->path);
	size_t b_depth = path_depth(b->path);

	if (a->distance != b->distance)
		return a->distance < b->distance;
	if (a->beside != b->beside)
		return a->beside;
	if (a_depth != b_depth)
		return a_depth < b_depth;
	return strcmp(a->path, b->path) < 0;
}

/*
 * Keep the best few: ordered by distance, then those beside the missing path, then by
 * depth, then by name.
 */
static void near_keep(struct near *near, const char *folder, const char *name,
		      size_t distance)
{
	struct near_name made = {.distance = distance,
				 .beside = str_is(near->folder, folder)};
	size_t at = near->found_count;
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (*folder)
		buf_addf(&path, "%s/", folder);
	buf_adds(&path, name);
	if (strcmp(path.data, near->self) == 0) {
		near->is_link = true;
		buf_fini(&path);
		return;
	}
	if (near_is_blocked(near, path.data)) {
		buf_fini(&path);
		return;
	}
	made.path = buf_take(&path);
	while (at > 0 && near_before(&made, &near->found[at - 1]))
		at--;
	if (at >= FILES_NEAR_MAX) {
		free(made.path);
		return;
	}
	if (near->found_count == FILES_NEAR_MAX)
		free(near->found[--near->found_count].path);
	memmove(&near->found[at + 1], &near->found[at],
		(near->found_count - at) * sizeof(near->found[0]));
	near->found[at] = made;
	near->found_count++;
}

/*
 * A name with control bytes is no suggestion: nobody mistypes them, and a terminal would
 * obey them.
 */
static bool near_has_control(const char *name)
{
	for (; *name; name++) {
		if ((unsigned char)*name < ' ' || *name == 0x7f)
			return true;
	}
	return false;
}

/* NAME without its last ending: "main" of main.c. A dot at the front begins no ending. */
static struct str near_stem(struct str name)
{
	const char *dot = name.size > 1 ? memrchr(name.data + 1, '.', name.size - 1) : NULL;

	return dot ? str_part(name, 0, (size_t)(dot - name.data)) : name;
}

/*
 * The distance between HAVE and WANTED without their endings (main.c for main.cpp): one
 * more than the distance of their stems. LIMIT + 1 when it is larger than LIMIT.
 */
static size_t near_stem_distance(struct str wanted, struct str have, size_t limit)
{
	struct str stem = near_stem(have);
	size_t most = stem.size / 4 < limit ? stem.size / 4 : limit - 1;
	size_t distance = text_distance(near_stem(wanted), stem, most);

	return distance > most ? limit + 1 : distance + 1;
}

static void near_judge(struct near *near, const char *folder, const char *name,
		       bool is_folder)
{
	struct str have = str_of(name);
	size_t limit = have.size / 4 + 1;
	size_t distance, by_stem;

	if (limit > NEAR_DISTANCE_MAX)
		limit = NEAR_DISTANCE_MAX;
	if (near_has_control(name))
		return;
	if (str_equal(have, near->wanted)) {
		near_keep(near, folder, name, 0);
		return;
	}
	if (near->found_count == FILES_NEAR_MAX &&
	    near->found[FILES_NEAR_MAX - 1].distance <= 1)
		return;
	if (have.size == near->wanted.size && strcasecmp(name, near->wanted.data) == 0)
		distance = 1;
	else
		distance = text_distance(near->wanted, have, limit);
	by_stem = is_folder ? distance : near_stem_distance(near->wanted, have, limit);
	if (by_stem < distance)
		distance = by_stem;
	if (distance <= limit && distance < have.size)
		near_keep(near, folder, name, distance);
}

static void near_queue(struct near *near, const char *folder, const char *name)
{
	struct buf path;

	if (near->folder_count >= NEAR_FOLDERS_MAX || strcmp(name, ".git") == 0)
		return;
	buf_init(&path, PATH_MAX);
	if (*folder)
		buf_addf(&path, "%s/", folder);
	buf_adds(&path, name);
	near->folders = memory_grow(near->folders, near->folder_count + 1, sizeof(char *));
	near->folders[near->folder_count++] = buf_take(&path);
	buf_fini(&path);
}

static bool near_late(struct near *near)
{
	return ++near->seen % NEAR_CLOCK_EVERY == 0 && clock_now_ms() >= near->deadline_ms;
}

/* Look at the names in one folder. False when the time is over. */
static bool near_folder(struct near *near, const char *folder)
{
	struct file file;
	struct err err;
	DIR *dir = NULL;
	bool more = true;

	file_init(&file);
	if (files_reach(near->files, *folder ? folder : ".", FILES_FOLDER, &file, &err))
		dir = fdopendir(file.fd);
	if (dir) {
		file.fd = -1;
		for (struct dirent *entry; more && (entry = readdir(dir));) {
			const char *name = entry->d_name;

			if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
				continue;
			near_judge(near, folder, name, entry->d_type == DT_DIR);
			if (entry->d_type == DT_DIR)
				near_queue(near, folder, name);
			more = !near_late(near);
		}
		(void)closedir(dir);
	}
	file_fini(&file);
	return more;
}

static void near_walk(struct near *near)
{
	bool more = near_folder(near, "");

	while (more && near->folder_at < near->folder_count) {
		char *folder = near->folders[near->folder_at];

		near->folders[near->folder_at++] = NULL;
		more = near_folder(near, folder);
		free(folder);
	}
}

/* "/src/a.c" for "src/a.c" is a common slip: does PATH without its slash exist? */
static bool near_without_slash(struct near *near, const char *path)
{
	struct file file;
	struct err err;
	const char *rest = path + strspn(path, "/");
	bool reached;

	if (rest == path || !*rest)
		return false;
	file_init(&file);
	reached = files_reach(near->files, rest, FILES_ANY, &file, &err);
	file_fini(&file);
	if (reached)
		near_keep(near, "", rest, 0);
	return reached;
}

/*
 * Remove quotes around the path in COPY and a line number behind it. COPY is cut; the
 * return value points to the first byte of the rest.
 */
static char *near_unwrap(char *copy)
{
	size_t size = strlen(copy);
	size_t digits;

	while (size > 2 && strchr("\"'`", copy[0]) && copy[size - 1] == copy[0]) {
		copy[size - 1] = '\0';
		copy++;
		size -= 2;
	}
	/* ":12", ":12:5", ":12-30", "#L12-L30" */
	digits = strspn(copy, "0123456789") == size ? 0 : size;
	while (digits > 0 && strchr("0123456789:-L#", copy[digits - 1]))
		digits--;
	if (digits > 0 && (copy[digits] == ':' || copy[digits] == '#'))
		copy[digits] = '\0';
	return copy;
}

void files_add_near(struct files *files, const char *path, struct buf *out)
{
	struct near near = {.files = files};
	auto_free char *copy = memory_copy(path);
	auto_free char *self = NULL;
	size_t size = strlen(copy);

	while (size > 1 && copy[size - 1] == '/')
		copy[--size] = '\0';
	self = memory_copy(copy);
	near.self = path_relative(self, files->workspace);
	near.folder = str_part(str_of(near.self), 0,
			       (size_t)(path_base_name(near.self) - near.self));
	if (near.folder.size > 0)
		near.folder.size--;
	near.wanted = str_of(path_base_name(near_unwrap(copy)));
	near.deadline_ms = clock_now_ms() + FILES_NEAR_MS;
	if (near.wanted.size == 0 || near.wanted.size > NAME_MAX)
		return;
	if (!near_without_slash(&near, copy))
		near_walk(&near);
	if (near.is_link)
		buf_adds(out, " It is a symbolic link; what it leads to is missing or lies "
			      "outside.");
	for (size_t i = 0; i < near.found_count; i++) {
		/*
		 * When files of exactly this name exist, omit names that are only near.
		 */
		if (near.found[i].distance == near.found[0].distance ||
		    near.found[0].distance > 0) {
			buf_adds(out, i == 0 ? " Did you mean: " : ", ");
			buf_adds(out, near.found[i].path);
		}
		free(near.found[i].path);
	}
	if (near.found_count)
		buf_addc(out, '?');
	while (near.folder_at < near.folder_count)
		free(near.folders[near.folder_at++]);
	free(near.folders);
}
