/* copied: reads the list of a copied tree, and compares the copy with it. */

#include "files/copied.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Each level of a walk holds a descriptor and a path; no project is half as deep. */
enum { DEPTH_MAX = 256 };

struct row {
	const char *path;
	size_t order;
	struct undo_state before, after;
};

struct copied {
	struct row *rows; /* one for each path, a folder right before all that is in it */
	size_t count;
	struct arena paths;
};

/* Reading the list. */

static bool take_row(void *context, const struct undo_change *change)
{
	struct copied *copied = context;

	copied->rows = memory_more(copied->rows, copied->count, sizeof(*copied->rows));
	copied->rows[copied->count] =
		(struct row){.path = arena_copy(&copied->paths, change->path),
			     .order = copied->count,
			     .before = change->before,
			     .after = change->after};
	copied->count++;
	return true;
}

/* The order of paths in which a folder stands right before all that is in it. */
static int compare_paths(const char *one, const char *other)
{
	while (*one != '\0' && *one == *other) {
		one++;
		other++;
	}
	if (*one == *other)
		return 0;
	if (*one == '\0' || *other == '\0')
		return *one == '\0' ? -1 : 1;
	if (*one == '/' || *other == '/')
		return *one == '/' ? -1 : 1;
	return (unsigned char)*one < (unsigned char)*other ? -1 : 1;
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *one = a, *other = b;
	const int order = compare_paths(one->path, other->path);

	/* The last row of a path comes first. */
	return order != 0 ? order : one->order > other->order ? -1 : 1;
}

bool copied_read(int list, struct copied **out, struct err *err)
{
	struct copied *copied = memory_alloc(sizeof(*copied));
	struct undo_reader reader = {.change = take_row, .context = copied};
	size_t kept = 0, seen = 0;

	*out = NULL;
	arena_init(&copied->paths);
	if (!undo_log_read(&reader, list, err)) {
		copied_free(copied);
		return err_while(err, "the list of a copied folder");
	}
	if (copied->count > 0)
		qsort(copied->rows, copied->count, sizeof(*copied->rows), compare_rows);
	for (size_t i = 0; i < copied->count; i++) {
		const struct row row = copied->rows[i];

		if (i > 0 && strcmp(copied->rows[seen].path, row.path) == 0)
			continue;
		seen = i;
		if (row.before.kind != UNDO_ABSENT || row.after.kind != UNDO_ABSENT)
			copied->rows[kept++] = row;
	}
	copied->count = kept;
	*out = copied;
	return true;
}

void copied_free(struct copied *copied)
{
	if (copied == NULL)
		return;
	free(copied->rows);
	arena_fini(&copied->paths);
	free(copied);
}

/* The index of the first row whose path is not before PATH. */
static size_t find_from(const struct copied *copied, const char *path)
{
	size_t low = 0, high = copied->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare_paths(copied->rows[middle].path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct row *find(const struct copied *copied, const char *path)
{
	const size_t at = find_from(copied, path);

	return at < copied->count && strcmp(copied->rows[at].path, path) == 0
		       ? &copied->rows[at]
		       : NULL;
}

/* Is PATH the path FOLDER ("": the top), or below it? */
static bool is_within(const char *path, const char *folder)
{
	const size_t size = strlen(folder);

	return size == 0 || (strncmp(path, folder, size) == 0 &&
			     (path[size] == '/' || path[size] == '\0'));
}

/* Comparing. */

const struct undo_state *copied_before(const struct copied *copied, const char *relative)
{
	const struct row *row = find(copied, relative);

	return row != NULL && row->before.kind != UNDO_ABSENT ? &row->before : NULL;
}

bool copied_is_kept(const struct undo_state *before, const struct undo_state *now)
{
	if (before->kind != now->kind)
		return false;
	/*
	 * The number of a file is not compared: some file systems of a network give a file
	 * another one each time. A time of 0 is that of a file which changed while it was
	 * copied.
	 */
	return before->kind == UNDO_FOLDER ||
	       (before->ctime_ns != 0 && before->ctime_ns == now->ctime_ns &&
		before->mtime_ns == now->mtime_ns && before->size == now->size);
}

bool copied_same(const struct copied *copied, const char *relative, const struct stat *st)
{
	const struct row *row = find(copied, relative);
	struct undo_state now;

	if (row == NULL)
		return false;
	undo_state_of(st, &now);
	return now.kind != UNDO_ABSENT && copied_is_kept(&row->after, &now) &&
	       row->after.mode == now.mode;
}

/* Is nothing at RELATIVE in COPY? A folder that is closed may hold it. */
static bool is_gone(int copy, const char *relative)
{
	auto_close int fd = fd_open_beneath(copy, relative, O_PATH);

	return fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP);
}

/* copied_each_gone, for RELATIVE and what is below it. */
static bool each_gone(const struct copied *copied, int copy, const char *relative,
		      bool (*each)(void *context, const char *relative), void *context)
{
	const char *gone = NULL; /* the last folder that is not there */

	for (size_t i = find_from(copied, relative);
	     i < copied->count && is_within(copied->rows[i].path, relative); i++) {
		const char *path = copied->rows[i].path;

		if (gone == NULL || !is_within(path, gone)) {
			gone = is_gone(copy, path) ? path : NULL;
			if (gone == NULL)
				continue;
		}
		if (!each(context, path))
			return false;
	}
	return true;
}

bool copied_each_gone(const struct copied *copied, int copy,
		      bool (*each)(void *context, const char *relative), void *context)
{
	return each_gone(copied, copy, "", each, context);
}

void copied_each(const struct copied *copied, const char *relative,
		 void (*each)(void *context, const char *relative), void *context)
{
	for (size_t i = find_from(copied, relative);
	     i < copied->count && is_within(copied->rows[i].path, relative); i++)
		each(context, copied->rows[i].path);
}

/* Does the folder RELATIVE of COPY hold a name that is not as the list says? */
static bool holds_other(const struct copied *copied, int copy, const char *relative,
			unsigned depth)
{
	auto_close int folder = fd_open_beneath(copy, relative, O_RDONLY | O_DIRECTORY);
	DIR *names = folder >= 0 && depth < DEPTH_MAX ? fd_open_names(folder) : NULL;
	bool other = depth >= DEPTH_MAX;

	for (const struct dirent *at = names != NULL ? readdir(names) : NULL;
	     at != NULL && !other; at = readdir(names)) {
		char path[PATH_MAX];
		struct stat st;

		if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0)
			continue;
		other = snprintf(path, sizeof(path), "%s/%s", relative, at->d_name) >=
				(int)sizeof(path) ||
			(fstatat(folder, at->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			 (!copied_same(copied, path, &st) ||
			  (S_ISDIR(st.st_mode) &&
			   holds_other(copied, copy, path, depth + 1))));
	}
	if (names != NULL)
		(void)closedir(names);
	return other;
}

/* For each_gone: the first one is enough. */
static bool stop(void *context, const char *relative)
{
	(void)context;
	(void)relative;
	return false;
}

bool copied_differs(const struct copied *copied, int copy, const char *relative)
{
	auto_close int fd = fd_open_beneath(copy, relative, O_PATH);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 &&
	    (!copied_same(copied, relative, &st) ||
	     (S_ISDIR(st.st_mode) && holds_other(copied, copy, relative, 0))))
		return true;
	return !each_gone(copied, copy, relative, stop, NULL);
}
