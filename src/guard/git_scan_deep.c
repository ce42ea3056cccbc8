/*
 * git_scan_deep: finds repositories further down than git_scan_run looks by itself, those
 * near the root first. Folders are opened by their whole path beneath the root and not
 * kept open, so a tree may be of any depth. Most folders have no subfolders; they are not
 * opened when the link count shows it.
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

/* Changes to a folder since git_scan.when. */
enum state {
	STATE_CHANGED = 1,
	STATE_MOVED = 2, /* perhaps the folder, or one above it, was moved */
};

/* The folders that wait to be read, and findings about the one being read. */
struct deep {
	const struct git_scan_root *root;
	bool counts_folders; /* the link count of a folder is 2 plus its subfolders */
	size_t seen;
	char **paths;          /* relative to the root; "" is the root */
	unsigned char *states; /* enum state of each */
	unsigned state;        /* of the folder being read */
	/* of the waiting folders: a hostile tree may have long names */
	size_t count, bytes;
	const char *at;
	bool is_repository;
};

/*
 * Can the folder NAME with the status ST be left out? It has no subfolders, and is no new
 * repository (`.git` file, or HEAD) whose folders are elsewhere.
 */
static bool is_empty(const struct scan_look *look, const char *name,
		     const struct stat *st, unsigned state)
{
	/*
	 * An unchanged folder has no new names, because a new name changes its ctime,
	 * which no program can set.
	 */
	return st->st_nlink == 2 && (state == 0 || (!look_may_hold(look, name, ".git") &&
						    !look_may_hold(look, name, "HEAD")));
}

/* The state of PATH, with the status ST, in the folder being read. */
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

/*
 * Set `partial`, and note the first folder that is left out, so that the report can name
 * it.
 */
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

static void push(const struct scan_look *look, struct deep *deep, const char *name)
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
	/* No program can open a longer path, so git cannot either. */
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

static void each_below(const struct scan_look *look, const char *name, void *context)
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

/* git_scan_run has already looked at the root and the folders directly in it. */
static bool is_near(const char *path)
{
	return strchr(path, '/') == NULL;
}

/* When each repository is judged by itself, the ceilings count for each one anew. */
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
	const struct scan_look above = {scan, root->fd, root->path, DT_DIR};
	char path[PATH_MAX];

	if (scan->each != NULL)
		scan->looks = scan->names = 0;
	/*
	 * Nothing below this folder will be read. Looking for two names costs less than
	 * reading all of them.
	 */
	if (deep->seen >= scan->folders_max && !look_may_hold(&above, deep->at, ".git") &&
	    !look_may_hold(&above, deep->at, "HEAD")) {
		miss(scan, root, deep->at);
		return;
	}
	if (snprintf(path, sizeof(path), "%s%s%s", root->path,
		     deep->at[0] != '\0' ? "/" : "", deep->at) >= (int)sizeof(path))
		return;
	auto_close int fd = look_open_whole(scan, root, path);
	const struct scan_look look = {scan, fd, path, DT_DIR};
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

/*
 * Does the link count of a folder tell the number of its subfolders? Other file systems
 * say 1 or any number.
 */
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
