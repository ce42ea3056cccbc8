/*
 * git_scan_moved: decides whether a file was at its place before a moment. An old file
 * may have been moved there later together with a folder. Such a rename changes the moved
 * folder and the folder that it comes into, but nothing below. So the times of all
 * folders up to the root are compared.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "guard/git_scan_parts.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool look_is_since(const struct timespec *changed, int64_t before_ns)
{
	return clock_ns(changed) >= before_ns;
}

bool look_is_in_place(const struct value *places, const char *path, const struct stat *st)
{
	auto_free char *key = places != NULL ? path_key(path) : NULL;
	const struct value *inode = key != NULL ? value_member(places, key) : NULL;

	return inode != NULL && value_integer(inode) == (int64_t)st->st_ino;
}

/* The way down from a root to the file. */
struct way {
	const struct git_scan *scan;
	const struct git_scan_when *when;
	int64_t before_ns;
	bool above_changed; /* the folder above has changed */
	enum git_scan_age age;
};

static void grow(struct way *way, enum git_scan_age age)
{
	if (age > way->age)
		way->age = age;
}

/* Take account of the folder PATH, with the status ST, which is on the way. */
static void pass(struct way *way, const char *path, const struct stat *st)
{
	const bool changed = look_is_since(&st->st_ctim, way->before_ns);

	/*
	 * A rename changes only the ctime of the moved folder. A new name in it changes
	 * its mtime, too, and then a move is only possible, not certain.
	 */
	if (changed && way->above_changed && !look_is_in_place(way->when->places, path, st))
		grow(way, look_is_since(&st->st_mtim, way->before_ns) ? GIT_SCAN_DOUBTFUL
								      : GIT_SCAN_NEW);
	/* A changed repository may have become one by its last change. */
	auto_free char *key = changed ? path_key(path) : NULL;
	if (changed && value_member(way->scan->repositories, key) != NULL)
		grow(way, GIT_SCAN_DOUBTFUL);
	way->above_changed = changed;
}

/* Go from the folder ROOT down PATH, whose part from REST on is relative to ROOT. */
static void descend(struct way *way, int root, char *path, char *rest)
{
	auto_close int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
	struct stat st;

	while (at >= 0) {
		char *slash = strchr(rest, '/');

		if (slash != NULL)
			*slash = '\0';
		if (fstatat(at, rest, &st, AT_SYMLINK_NOFOLLOW) < 0)
			break;
		if (slash == NULL) {
			if (look_is_since(&st.st_ctim, way->before_ns))
				grow(way, GIT_SCAN_NEW);
			return;
		}
		pass(way, path, &st);
		int next = openat(at, rest, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		*slash = '/';
		rest = slash + 1;
		fd_close(&at);
		at = next;
	}
	grow(way, GIT_SCAN_NEW);
}

enum git_scan_age git_scan_age(const struct git_scan *scan, const char *key,
			       const struct git_scan_when *when)
{
	auto_free char *path = path_of_key(key);
	struct way way = {.scan = scan, .when = when, .before_ns = when->before_ns};
	struct stat st;

	for (size_t i = 0; path != NULL && i < scan->root_count; i++) {
		const struct git_scan_root *root = &scan->roots[i];

		if (!path_within(path, root->path) || strcmp(path, root->path) == 0)
			continue;
		if (fstat(root->fd, &st) < 0)
			return GIT_SCAN_NEW;
		way.above_changed = look_is_since(&st.st_ctim, way.before_ns);
		const size_t size = strlen(path_relative(path, root->path));
		descend(&way, root->fd, path, path + strlen(path) - size);
		return way.age;
	}
	return GIT_SCAN_NEW;
}
