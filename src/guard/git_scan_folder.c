/*
 * git_scan_folder: looks at one git folder (`.git`, a bare repository, a linked
 * worktree's part) for names that make git run a program or look elsewhere. See
 * gitrepository-layout(5).
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "guard/readers.h"
#include "guard/scan.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* The path in `commondir` of every linked worktree's folder. */
#define COMMON "../.."

static void each_hook(const struct scan_look *look, const char *name, void *context)
{
	struct stat st;

	(void)context;
	if (!str_ends(str_of(name), STR(".sample")) && !look_is_aside(name) &&
	    look_stat(look, name, &st))
		look_mark_stat(look, name, &st);
}

static void each_name(const struct scan_look *look, const char *name, void *context)
{
	struct stat st;

	(void)context;
	if (!look_is_aside(name) && look_stat(look, name, &st))
		look_mark_stat(look, name, &st);
}

/*
 * The worktree's `.gitmodules` gives a module its name, which may have our mark. So a
 * folder with our mark is looked at like a repository.
 */
static void each_module(const struct scan_look *look, const char *name, void *context)
{
	const struct git_folder *above = context;
	char path[PATH_MAX];

	if (!look_is_aside(name)) {
		each_name(look, name, NULL);
		return;
	}
	auto_close int fd = look_enter_or_mark(look, name, path);
	if (fd >= 0)
		git_scan_folder(look->scan, fd, path, NULL, above->depth + 1);
}

/*
 * Call EACH for the entries of the folder NAME. Anything but a folder is marked as a
 * danger.
 */
static void look_entries(const struct scan_look *look, const char *name,
			 void (*each)(const struct scan_look *, const char *, void *),
			 void *context)
{
	char path[PATH_MAX];
	auto_close int fd = look_enter_or_mark(look, name, path);

	if (fd < 0)
		return;
	const struct scan_look below = {look->scan, fd, path};
	look_names(&below, each, context);
}

static void look_info(const struct scan_look *look)
{
	static const char *const names[] = {"attributes", "exclude"};
	char path[PATH_MAX];
	auto_close int fd = look_enter_or_mark(look, "info", path);
	struct buf text;
	struct stat st;

	if (fd < 0)
		return;
	const struct scan_look info = {look->scan, fd, path};
	buf_init(&text, GIT_CONFIG_MAX);
	for (size_t i = 0; i < 2; i++) {
		enum look_found found =
			look_read(&info, names[i], GIT_CONFIG_MAX, &text, &st);
		if (found == LOOK_ODD)
			look_mark_stat(&info, names[i], &st);
		else if (found == LOOK_READ && !git_text_is_empty(buf_str(&text)))
			look_mark(&info, names[i], buf_str(&text));
	}
	buf_fini(&text);
}

static void look_common(const struct scan_look *look)
{
	struct buf text;
	struct stat st;
	struct str line;

	buf_init(&text, GIT_POINTER_MAX);
	enum look_found found = look_read(look, "commondir", GIT_POINTER_MAX, &text, &st);
	if (found == LOOK_ODD)
		look_mark_stat(look, "commondir", &st);
	else if (found == LOOK_READ &&
		 (!git_text_line(buf_str(&text), &line) || !str_is(line, COMMON)))
		look_mark(look, "commondir", buf_str(&text));
	buf_fini(&text);
}

/* Look at NAME, a worktree's part of the repository CONTEXT. */
static void each_worktree(const struct scan_look *all, const char *name, void *context)
{
	const struct git_folder *above = context;
	char path[PATH_MAX];
	struct buf pointer;
	struct stat st;

	if (!look_stat(all, name, &st))
		return;
	if (!S_ISDIR(st.st_mode)) {
		if (S_ISLNK(st.st_mode) && !look_is_aside(name))
			look_mark_stat(all, name, &st);
		return;
	}
	auto_close int fd = look_enter(all, name, path);
	if (fd < 0)
		return;
	struct git_folder folder = {.look = {all->scan, fd, path},
				    .depth = above->depth,
				    .sha256 = above->sha256};
	look_common(&folder.look);
	git_scan_config(&folder, "config.worktree");
	git_scan_works(&folder.look);
	git_scan_links(&folder.look, above->depth);
	git_scan_inside(&folder.look, above->depth);
	/*
	 * If the part is also a complete repository, git uses it as one in this folder.
	 */
	git_scan_worktree(all->scan, fd, path, above->depth + 1);
	buf_init(&pointer, PATH_MAX);
	if (look_line_path(&folder.look, "gitdir", path, &pointer) &&
	    str_ends(buf_str(&pointer), STR("/.git"))) {
		buf_truncate(&pointer, pointer.size - strlen("/.git"));
		folder.worktree = pointer.data;
		auto_close int tree = look_open_path(all->scan, pointer.data);
		if (tree >= 0)
			git_scan_worktree(all->scan, tree, pointer.data, above->depth + 1);
	}
	git_scan_index(&folder);
	git_scan_resolutions(&folder);
	buf_fini(&pointer);
}

void git_scan_folder(struct git_scan *scan, int fd, const char *path,
		     const char *worktree, unsigned depth)
{
	struct git_folder folder = {.look = {scan, fd, path},
				    .worktree = worktree,
				    .depth = depth};
	const size_t left = value_count(scan->left);
	struct stat st;

	auto_free char *key = path_key(path);
	if (value_member(scan->repositories, key) != NULL)
		return;
	if (depth > GIT_SCAN_DEPTH ||
	    value_count(scan->repositories) >= GIT_SCAN_REPOSITORIES) {
		(void)look_trouble(&folder.look, E2BIG, "");
		return;
	}
	git_scan_note(scan, &scan->repositories, key);
	/* Only a linked worktree's part has a `commondir`, so one here is a danger. */
	if (look_stat(&folder.look, "commondir", &st))
		look_mark_stat(&folder.look, "commondir", &st);
	git_scan_config(&folder, "config");
	git_scan_config(&folder, "config.worktree");
	look_entries(&folder.look, "hooks", each_hook, NULL);
	look_entries(&folder.look, "modules", each_module, &folder);
	/*
	 * The old places of remotes. Git reads them for names that are not in the
	 * configuration.
	 */
	look_entries(&folder.look, "remotes", each_name, NULL);
	look_entries(&folder.look, "branches", each_name, NULL);
	look_info(&folder.look);
	git_scan_works(&folder.look);
	git_scan_links(&folder.look, depth);
	git_scan_inside(&folder.look, depth);
	git_scan_share_left(&folder.look, left);
	git_scan_index(&folder);
	git_scan_resolutions(&folder);
	look_entries(&folder.look, "worktrees", each_worktree, &folder);
}
