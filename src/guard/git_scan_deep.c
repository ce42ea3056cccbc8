/*
 * git_scan_deep: repositories further down than git_scan_run looks by itself, those near the
 * root first. Folders are opened beneath the root by their whole path, and nothing is kept
 * open: a tree may be as deep as it likes. One without folders in it is not opened, where the
 * file system says so: most are such.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "guard/git_scan_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* A folder, since git_scan.when. */
enum state {
	STATE_CHANGED = 1,
	STATE_MOVED = 2, /* or one above it; perhaps */
};

/* The folders that are still to be read, and what the one that is read shows. */
struct deep {
	const struct git_scan_root *root;
	bool counts_folders; /* the links of a folder are those in it, and two */
	size_t seen;
	char **paths;          /* relative to the root; "" is that */
	unsigned char *states; /* enum state of each */
	unsigned state;        /* of the one that is read */
	size_t count, bytes;   /* those that wait: a hostile tree has long names */
	const char *at;
	bool is_repository;
};

/* Has the folder NAME with the status ST no repository whose folders are elsewhere? */
static bool is_empty(const struct look *look, const char *name, const struct stat *st,
		     unsigned state)
{
	/* Nothing in a folder is newer than its own last change, which is nobody's to set. */
	return st->st_nlink == 2 && (state == 0 || (!look_may_hold(look, name, ".git") &&
						    !look_may_hold(look, name, "HEAD")));
}

/* The state of PATH, with the status ST, in the folder that is read. */
static unsigned state_of(const struct git_scan *scan, const struct deep *deep,
			 const char *path, const struct stat *st)
{
	const unsigned changed =
		look_is_since(&st->st_ctim, scan->when.before_ns) ? STATE_CHANGED : 0;
	const unsigned moved = deep->state & STATE_MOVED;

	if (changed == 0 || moved != 0 || (deep->state & STATE_CHANGED) == 0 ||
	    look_is_in_place(scan->when.places, path, st))
		return changed | moved;
	return changed | STATE_MOVED;
}

/* The first folder that is not gone into says where the rest lies. */
static void miss(struct git_scan *scan, const struct git_scan_root *root, const char *path)
{
	struct buf whole;

	scan->partial = true;
	if (scan->missed != NULL)
		return;
	buf_init(&whole, 2 * PATH_MAX);
	(void)buf_addf(&whole, "%s%s%s", root->path, path[0] != '\0' ? "/" : "", path);
	scan->missed = buf_take(&whole);
}

static void note_place(struct git_scan *scan, const char *path, const struct stat *st)
{
	if (!scan->wants_places || value_count(scan->places) >= GIT_SCAN_PLACES)
		return;
	auto_free char *key = path_key(path);
	value_set_integer(git_scan_list(&scan->places), key, (int64_t)st->st_ino);
}

static void push(const struct look *look, struct deep *deep, const char *name)
{
	struct git_scan *scan = look->scan;
	char path[PATH_MAX];
	unsigned state = 0;
	struct stat st;

	if (deep->seen >= scan->folders_max || deep->bytes >= GIT_SCAN_PATHS) {
		miss(scan, deep->root, deep->at);
		return;
	}
	deep->seen++;
	/* A path that no program could open holds nothing for git. */
	if (snprintf(path, sizeof(path), "%s/%s", look->path, name) >= (int)sizeof(path))
		return;
	if ((deep->counts_folders || scan->wants_places) &&
	    fstatat(look->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		state = state_of(scan, deep, path, &st);
		if (deep->counts_folders && is_empty(look, name, &st, state))
			return;
		note_place(scan, path, &st);
	}
	char *relative = memory_copy(path_relative(path, deep->root->path));
	deep->bytes += strlen(relative);
	deep->states[deep->count] = (unsigned char)state;
	deep->paths[deep->count++] = relative;
}

static void each_below(const struct look *look, const char *name, void *context)
{
	struct deep *deep = context;
	int type = look->type;
	struct stat st;

	if (strcmp(name, ".git") == 0 || strcmp(name, "HEAD") == 0)
		deep->is_repository = true;
	if (type == DT_UNKNOWN && look_stat(look, name, &st))
		type = (int)IFTODT(st.st_mode);
	if (type == DT_DIR && strcmp(name, ".git") != 0)
		push(look, deep, name);
}

/* At the root and in the folders directly in it git_scan_run has looked. */
static bool is_near(const char *path)
{
	return strchr(path, '/') == NULL;
}

/* Repositories count for ceilings of their own, when each is judged by itself. */
static void give(struct git_scan *scan)
{
	if (scan->each == NULL)
		return;
	scan->each(scan, scan->context);
	git_scan_forget(scan);
}

static void note_nested(struct git_scan *scan, const char *path)
{
	auto_free char *key = path_key(path);

	if (scan->nested == NULL)
		scan->nested = value_new_array();
	value_append(scan->nested, value_new_text(key));
}

static void look_deep(struct git_scan *scan, const struct git_scan_root *root,
		      struct deep *deep)
{
	const struct look above = {scan, root->fd, root->path, DT_DIR};
	char path[PATH_MAX];

	if (scan->each != NULL)
		scan->looks = scan->names = 0;
	/* Nothing below it will be read: asking for two names costs less than reading all. */
	if (deep->seen >= scan->folders_max && !look_may_hold(&above, deep->at, ".git") &&
	    !look_may_hold(&above, deep->at, "HEAD")) {
		miss(scan, root, deep->at);
		return;
	}
	if (snprintf(path, sizeof(path), "%s%s%s", root->path,
		     deep->at[0] != '\0' ? "/" : "", deep->at) >= (int)sizeof(path))
		return;
	auto_close int fd = look_open_whole(scan, root, path);
	const struct look look = {scan, fd, path, DT_DIR};
	if (fd < 0)
		return;
	deep->is_repository = false;
	look_names(&look, each_below, deep);
	if (!deep->is_repository || is_near(deep->at))
		return;
	if (scan->each == NULL)
		note_nested(scan, path);
	git_scan_worktree(scan, fd, path, 1);
	give(scan);
}

/* Others say 1, or what they like. */
static bool counts_folders(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == TMPFS_MAGIC ||
		fs.f_type == XFS_SUPER_MAGIC);
}

void git_scan_deep(struct git_scan *scan, const struct git_scan_root *root)
{
	struct deep deep = {.root = root,
			    .paths = memory_array(scan->folders_max, sizeof(char *)),
			    .states = memory_array(scan->folders_max, 1),
			    .counts_folders = counts_folders(root->fd),
			    .at = ""};
	struct stat st;

	if (deep.counts_folders && fstat(root->fd, &st) == 0)
		deep.state = state_of(scan, &deep, root->path, &st);
	look_deep(scan, root, &deep);
	for (size_t i = 0; i < deep.count; i++) {
		deep.at = deep.paths[i];
		deep.state = deep.states[i];
		if (look_is_late(scan))
			miss(scan, root, deep.at);
		else
			look_deep(scan, root, &deep);
		deep.bytes -= strlen(deep.at);
		free(deep.paths[i]);
	}
	scan->folders += deep.seen;
	free(deep.states);
	free(deep.paths);
}
