/*
 * files: holds the roots open, decides what may be done below them, and reaches existing
 * files (files_follow.c finds the way).
 */
#include "files/files.h"
#include "files/files_inside.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/pattern.h"
#include "base/text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

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
	made->journal = made->replaced = -1;
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
	free(files);
}

void files_journal(struct files *files, int fd)
{
	files->journal = fd;
}

void files_close_later(struct files *files, int fd)
{
	files_settle(files);
	files->replaced = fd;
}

void files_settle(struct files *files)
{
	fd_close(&files->replaced);
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

bool files_asks_folder(const char *path)
{
	struct str text = str_of(path);

	return text.size > 1 && (str_ends(text, STR("/")) || str_ends(text, STR("/.")));
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
