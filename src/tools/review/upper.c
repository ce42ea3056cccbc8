/*
 * upper: reads the upper folder of an overlay (files/overlay.h). Folders that were renamed
 * (redirect), files without their data (metacopy) and removed names as attributes
 * (whiteout) need options that our mounts do not have.
 */

#include "tools/review/upper.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/path.h"
#include "files/overlay.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
	STOP_EVERY = 256, /* names between two questions whether the call must stop */
	TELL_MS = 200,
	/* Each level keeps two descriptors and a path; no project is half as deep. */
	DEPTH_MAX = 256,
};

/* The work on one tree. */
struct reading {
	struct upper *upper;
	const struct upper_tree *tree;
	struct call *call;
	size_t names, depth;
	int64_t told_ms; /* when the last progress was told */
	struct err *err;
};

void upper_init(struct upper *upper)
{
	*upper = (struct upper){0};
	arena_init(&upper->paths);
	arena_init(&upper->contents);
	buf_init(&upper->text, UPPER_SMALL);
}

void upper_fini(struct upper *upper)
{
	free(upper->rows);
	arena_fini(&upper->paths);
	arena_fini(&upper->contents);
	buf_fini(&upper->text);
	*upper = (struct upper){0};
}

/* A new row for the path RELATIVE of the tree. NULL with an error: there are too many. */
static struct upper_row *add_row(struct reading *reading, const char *relative)
{
	struct upper *upper = reading->upper;
	char path[PATH_MAX];
	int size;

	if (upper->count >= UPPER_ROWS_MAX) {
		(void)err_set(reading->err, EFBIG, "the layer holds over %d changes",
			      UPPER_ROWS_MAX);
		return NULL;
	}
	size = strcmp(reading->tree->path, reading->call->workspace) == 0
		       ? snprintf(path, sizeof(path), "%s", relative)
		       : snprintf(path, sizeof(path), "%s/%s", reading->tree->path,
				  relative);
	if (size >= (int)sizeof(path) || !record_path_is_sound(str_of(path))) {
		(void)err_set(reading->err, ENAMETOOLONG, "a path in the layer is too long");
		return NULL;
	}
	upper->rows = memory_more(upper->rows, upper->count, sizeof(*upper->rows));
	struct upper_row *row = &upper->rows[upper->count++];
	*row = (struct upper_row){.tree = reading->tree, .state = undo_absent};
	row->path.data = arena_copy(&upper->paths, str_of(path));
	row->path.size = (size_t)size;
	row->relative = row->path.data + ((size_t)size - strlen(relative));
	return row;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* May the walk go on? */
static bool goes_on(struct reading *reading)
{
	const int64_t now_ms = ++reading->names % STOP_EVERY == 0 ? clock_now_ms() : 0;

	if (now_ms > reading->told_ms + TELL_MS) {
		reading->told_ms = now_ms;
		call_progress(reading->call, (double)reading->names, -1, "reading");
	}
	return now_ms == 0 || !call_stopped(reading->call) ||
	       err_set(reading->err, ECANCELED, "stopped");
}

/* WHOLE becomes RELATIVE/NAME, or NAME in the tree itself. */
static bool join(const char *relative, const char *name, char whole[PATH_MAX],
		 struct err *err)
{
	return snprintf(whole, PATH_MAX, "%s%s%s", relative,
			relative[0] != '\0' ? "/" : "", name) < PATH_MAX ||
	       err_set(err, ENAMETOOLONG, "a path in the layer is too long");
}

/* Is RELATIVE the repository of the workspace itself? */
static bool is_own_git(const struct reading *reading, const char *relative)
{
	return strcmp(relative, UNDO_GIT) == 0 &&
	       strcmp(reading->tree->path, reading->call->workspace) == 0;
}

/* The status of RELATIVE in the tree below, without following a link; false: none is there. */
static bool look_below(const struct reading *reading, const char *relative, struct stat *st)
{
	auto_close int fd = fd_open_beneath(reading->tree->below, relative, O_PATH);

	return fd >= 0 && fstat(fd, st) == 0;
}

static bool go_down(struct reading *reading)
{
	return ++reading->depth <= DEPTH_MAX ||
	       err_set(reading->err, ELOOP, "the layer has over %d folders in each other",
		       DEPTH_MAX);
}

/* One row for RELATIVE, which belongs to git. */
static bool add_git(struct reading *reading, const char *relative)
{
	struct upper_row *row = add_row(reading, relative);

	if (row != NULL)
		row->shape = UPPER_GIT;
	return row != NULL;
}

static bool add_removed(struct reading *reading, const char *relative, bool itself,
			unsigned char type);

/*
 * Add the names of the folder RELATIVE of the tree below as removed, except those that the
 * layer's folder LAYER (-1: none) has as well.
 */
static bool add_names_below(struct reading *reading, const char *relative, int layer)
{
	auto_close int folder =
		fd_open_beneath(reading->tree->below, relative, O_RDONLY | O_DIRECTORY);
	DIR *names = folder >= 0 ? fd_open_names(folder) : NULL;
	bool fine = go_down(reading);

	/* A folder that cannot be read is left: it is not empty when its turn comes. */
	fd_close(&folder);
	for (const struct dirent *at = names != NULL ? readdir(names) : NULL;
	     at != NULL && fine; at = readdir(names)) {
		char whole[PATH_MAX];
		struct stat st;

		if (is_dots(at->d_name) ||
		    (layer >= 0 && fstatat(layer, at->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0))
			continue;
		fine = goes_on(reading) && join(relative, at->d_name, whole, reading->err) &&
		       add_removed(reading, whole, true, at->d_type);
	}
	if (names != NULL)
		(void)closedir(names);
	reading->depth--;
	return fine;
}

/*
 * The layer has removed RELATIVE, or put something in its place. When that was a folder,
 * everything in it is removed: one row each. ITSELF: and the folder too. TYPE is that of a
 * directory entry; where it is known, nobody asks the file system once more.
 */
static bool add_removed(struct reading *reading, const char *relative, bool itself,
			unsigned char type)
{
	struct stat st;

	if (strcmp(path_base_name(relative), UNDO_GIT) == 0)
		return !itself || add_git(reading, relative);
	if (itself && add_row(reading, relative) == NULL)
		return false;
	if (type == DT_UNKNOWN && look_below(reading, relative, &st) && S_ISDIR(st.st_mode))
		type = DT_DIR;
	return type != DT_DIR || add_names_below(reading, relative, -1);
}

/* Did the session change RELATIVE of the tree, or something below it? */
static bool is_changed(const struct reading *reading, const char *relative)
{
	const struct upper_tree *tree = reading->tree;

	return tree->copied == NULL || copied_differs(tree->copied, tree->layer, relative);
}

/*
 * In the repository of the workspace git alone brings over what the layer has (commits.h). What
 * git runs or follows there is never landed, and is told: it was read-only for the layer.
 */
static bool add_gits(struct reading *reading)
{
	static const char *const names[] = {"config",
					    "config.worktree",
					    "commondir",
					    "modules",
					    "info/attributes",
					    "info/exclude",
					    "info/sparse-checkout",
					    NULL};
	static const char hooks[] = UNDO_GIT "/hooks";
	auto_close int git =
		fd_open_beneath(reading->tree->layer, UNDO_GIT, O_RDONLY | O_DIRECTORY);
	auto_close int folder =
		fd_open_beneath(reading->tree->layer, hooks, O_RDONLY | O_DIRECTORY);
	DIR *files = folder >= 0 ? fd_open_names(folder) : NULL;
	char path[PATH_MAX];
	bool fine = true;

	for (size_t i = 0; git >= 0 && names[i] != NULL && fine; i++) {
		auto_close int fd = fd_open_beneath(git, names[i], O_PATH);

		(void)snprintf(path, sizeof(path), UNDO_GIT "/%s", names[i]);
		fine = fd < 0 || !is_changed(reading, path) || add_git(reading, path);
	}
	for (const struct dirent *at = files != NULL ? readdir(files) : NULL;
	     at != NULL && fine; at = readdir(files)) {
		if (!is_dots(at->d_name))
			fine = goes_on(reading) &&
			       join(hooks, at->d_name, path, reading->err) &&
			       (!is_changed(reading, path) || add_git(reading, path));
	}
	if (files != NULL)
		(void)closedir(files);
	return fine;
}

static bool read_folder(struct reading *reading, const char *relative, bool hides);

/* ROW is a folder. HIDES: the folder in which it lies hides what is below. */
static bool read_below(struct reading *reading, struct upper_row *row, bool hides)
{
	/* The row may move when others are added. */
	const char *relative = row->relative;
	auto_close int folder =
		fd_open_beneath(reading->tree->layer, relative, O_RDONLY | O_DIRECTORY);

	if (folder < 0) {
		row->shape = UPPER_UNREADABLE;
		return true;
	}
	if (reading->tree->copied != NULL) {
		fd_close(&folder);
		return read_folder(reading, relative, false);
	}
	const struct overlay_marks marks = overlay_marks_of(folder);
	if (marks.strange) {
		row->shape = UPPER_UNKNOWN;
		return true;
	}
	row->copied_up = marks.copy;
	/* Only the topmost of these folders has the attribute; all of them hide. */
	const bool opaque = hides || overlay_hides(folder);
	if (opaque && !add_names_below(reading, relative, folder))
		return false;
	fd_close(&folder);
	return read_folder(reading, relative, opaque);
}

/* Is the folder NAME in FD closed to its owner? The copy has put nothing into it. */
static bool is_shut(int fd, const char *name)
{
	return faccessat(fd, name, R_OK | X_OK, AT_EACCESS) < 0 && errno == EACCES;
}

/*
 * NAME is in the folder FD of the layer, and RELATIVE in the tree. BELOW is that folder of the
 * tree below; -1: there is none.
 */
static bool read_name(struct reading *reading, int fd, const char *name,
		      const char *relative, bool hides, int below)
{
	const bool is_git = strcmp(name, UNDO_GIT) == 0;
	const struct copied *copied = reading->tree->copied;
	struct stat st, st_below;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(reading->err, errno, "%s in the layer: %s", relative,
			       strerror(errno));
	if (is_git && !is_changed(reading, relative))
		return true;
	if (is_git && is_own_git(reading, relative)) {
		reading->upper->has_git = true;
		if (S_ISDIR(st.st_mode))
			return add_gits(reading);
	}
	if (is_git)
		return add_git(reading, relative);
	if (copied != NULL && copied_same(copied, relative, &st))
		return !S_ISDIR(st.st_mode) || is_shut(fd, name) ||
		       read_folder(reading, relative, false);
	if (copied == NULL && overlay_is_removed(&st))
		return add_removed(reading, relative, true, DT_UNKNOWN);
	struct upper_row *row = add_row(reading, relative);
	if (row == NULL)
		return false;
	undo_state_of(&st, &row->state);
	row->device = st.st_dev;
	row->copied_up = copied != NULL && copied_before(copied, relative) != NULL;
	row->linked = S_ISREG(st.st_mode) && st.st_nlink > 1;
	if (row->state.kind == UNDO_ABSENT)
		row->shape = UPPER_OTHER;
	if (row->state.kind == UNDO_FOLDER)
		return read_below(reading, row, hides);
	if (copied != NULL)
		return true;
	/* A folder in its place is gone with everything in it. */
	return below < 0 || fstatat(below, name, &st_below, AT_SYMLINK_NOFOLLOW) < 0 ||
	       !S_ISDIR(st_below.st_mode) ||
	       add_removed(reading, row->relative, false, DT_UNKNOWN);
}

/* Read the folder RELATIVE of the layer, "": the tree itself. */
static bool read_folder(struct reading *reading, const char *relative, bool hides)
{
	auto_close int folder = relative[0] == '\0'
					? fcntl(reading->tree->layer, F_DUPFD_CLOEXEC, 3)
					: fd_open_beneath(reading->tree->layer, relative,
							  O_RDONLY | O_DIRECTORY);
	DIR *names = folder >= 0 ? fd_open_names(folder) : NULL;
	bool fine = (names != NULL ||
		     err_set(reading->err, errno, "%s in the layer: %s",
			     relative[0] != '\0' ? relative : "/", strerror(errno))) &&
		    go_down(reading);

	auto_close int below = relative[0] == '\0'
				       ? fcntl(reading->tree->below, F_DUPFD_CLOEXEC, 3)
				       : fd_open_beneath(reading->tree->below, relative,
							 O_PATH | O_DIRECTORY);

	fd_close(&folder);
	for (const struct dirent *at = names != NULL ? readdir(names) : NULL;
	     at != NULL && fine; at = readdir(names)) {
		char whole[PATH_MAX];

		if (!is_dots(at->d_name))
			fine = goes_on(reading) &&
			       join(relative, at->d_name, whole, reading->err) &&
			       read_name(reading, dirfd(names), at->d_name, whole, hides,
					 below);
	}
	if (names != NULL)
		(void)closedir(names);
	reading->depth--;
	return fine;
}

/* RELATIVE is not in the copy any more. What was in a repository goes with its one row. */
static bool add_gone(void *context, const char *relative)
{
	struct reading *reading = context;
	const char *git = strstr(relative, UNDO_GIT "/");

	if (!goes_on(reading))
		return false;
	if (git != NULL && (git == relative || git[-1] == '/')) {
		reading->upper->has_git = reading->upper->has_git || git == relative;
		return true;
	}
	if (is_own_git(reading, relative))
		reading->upper->has_git = true;
	if (strcmp(path_base_name(relative), UNDO_GIT) == 0)
		return add_git(reading, relative);
	struct upper_row *row = add_row(reading, relative);
	if (row != NULL)
		row->copied_up = true;
	return row != NULL;
}

bool upper_read(struct upper *upper, const struct upper_tree *tree, struct call *call,
		struct err *err)
{
	struct reading reading = {.upper = upper, .tree = tree, .call = call, .err = err};

	return read_folder(&reading, "", false) &&
	       (tree->copied == NULL ||
		copied_each_gone(tree->copied, tree->layer, add_gone, &reading));
}

static int compare_rows(const void *a, const void *b)
{
	const struct upper_row *one = a, *other = b;

	return strcmp(one->path.data, other->path.data);
}

void upper_sort(struct upper *upper)
{
	if (upper->count > 0)
		qsort(upper->rows, upper->count, sizeof(*upper->rows), compare_rows);
}

int upper_open(const struct upper_row *row)
{
	return fd_open_beneath(row->tree->layer, row->relative, O_RDONLY);
}

bool upper_read_link(const struct upper_row *row, struct buf *out, struct err *err)
{
	char *room = buf_reserve(out, PATH_MAX);
	const ssize_t size =
		room != NULL ? readlinkat(row->tree->layer, row->relative, room, PATH_MAX)
			     : -1;

	if (size < 0)
		return err_set(err, errno, "%s in the layer: %s", row->path.data,
			       strerror(errno));
	buf_commit(out, (size_t)size);
	return true;
}

bool upper_hash(struct upper *upper, struct upper_row *row, struct err *err)
{
	if (row->state.kind == UNDO_LINK) {
		struct buf target;

		buf_init(&target, 2 * PATH_MAX);
		const bool fine = upper_read_link(row, &target, err);
		row->state.size = target.size;
		undo_state_hash_text(buf_str(&target), &row->state);
		buf_fini(&target);
		return fine;
	}
	if (row->state.kind != UNDO_FILE)
		return true;
	auto_close int fd = upper_open(row);
	if (fd < 0)
		return err_set(err, errno, "%s in the layer: %s", row->path.data,
			       strerror(errno));
	const struct overlay_marks marks = overlay_marks_of(fd);
	/* In a copy the marks of an overlay are attributes as others are. */
	if (row->tree->copied == NULL) {
		row->copied_up = marks.copy;
		if (marks.strange) {
			row->shape = UPPER_UNKNOWN;
			return true;
		}
	}
	if (!undo_state_hash_small(fd, &row->state, &upper->text))
		return undo_state_hash(fd, &row->state, err);
	if (!marks.extra)
		row->content = upper_keep(upper, buf_str(&upper->text));
	return true;
}
