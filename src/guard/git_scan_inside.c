/*
 * git_scan_inside: finds new repositories inside a git folder, where other looks do not
 * go. A symlink elsewhere may lead to such a repository, and git uses it there like any
 * other. Git makes no repositories in its folder, and no symlinks either, through which
 * other programs (git-lfs) would write. Objects are in some 256 folders; only those that
 * have changed since the commands began are opened.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "guard/git_scan_parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum {
	INSIDE_DEPTH = 64,
	/* in one git folder; other programs may keep folders there */
	INSIDE_FOLDERS = 4096,
};

struct inside {
	unsigned repository, depth; /* depth of repositories, and of folders */
	size_t *seen;
	bool of_objects; /* the names are those in `objects` */
	bool in_objects; /* the names are those in a folder of `objects` */
	/* a folder above has changed, so this one may have been moved here */
	bool moved;
};

/* Is NAME a folder that other functions look at completely? */
static bool has_own_look(const char *name)
{
	return str_among("modules worktrees logs refs rr-cache", str_of(name));
}

/*
 * Is NAME a folder? These checks are not counted in `looks`, because there are many
 * folders and nearly all are unchanged.
 */
static bool is_folder(const struct scan_look *look, const char *name, struct stat *st)
{
	return (fstatat(look->fd, name, st, AT_SYMLINK_NOFOLLOW) == 0 ||
		(errno == EACCES && look_stat(look, name, st))) &&
	       S_ISDIR(st->st_mode);
}

static void each_inside(const struct scan_look *look, const char *name, void *context)
{
	const struct inside *above = context;
	struct git_scan *scan = look->scan;
	struct inside inside = *above;
	char path[PATH_MAX];
	struct stat st;

	if (above->in_objects)
		git_scan_left(look, "objects/??", name);
	if (look->type == DT_LNK && above->depth > 0 && !look_is_aside(name) &&
	    look_stat(look, name, &st) && clock_ns(&st.st_ctim) >= scan->inside_ns)
		look_mark_stat(look, name, &st);
	if ((look->type != DT_DIR && look->type != DT_UNKNOWN) ||
	    (above->depth == 0 && has_own_look(name)) || !is_folder(look, name, &st))
		return;
	const bool changed = above->moved || clock_ns(&st.st_ctim) >= scan->inside_ns;
	if (!changed && (above->of_objects || st.st_nlink == 2))
		return;
	if (above->depth >= INSIDE_DEPTH || (*above->seen)++ >= INSIDE_FOLDERS) {
		if (changed)
			(void)look_trouble(look, E2BIG, name);
		return;
	}
	auto_close int fd = look_enter(look, name, path);
	if (fd < 0)
		return;
	const struct scan_look below = {scan, fd, path, DT_DIR};
	inside.depth++;
	inside.in_objects = above->of_objects;
	inside.of_objects = above->depth == 0 && strcmp(name, "objects") == 0;
	inside.moved = changed && !inside.of_objects;
	if (changed)
		git_scan_worktree(scan, fd, path, above->repository);
	look_names(&below, each_inside, &inside);
}

void git_scan_inside(const struct scan_look *look, unsigned depth)
{
	size_t seen = 0;
	struct inside inside = {.repository = depth + 1, .seen = &seen};

	if (look->scan->inside_ns > 0)
		look_names(look, each_inside, &inside);
}
