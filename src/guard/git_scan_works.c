/*
 * git_scan_works: checks interrupted work, which the user's `--continue` goes on with,
 * and conflicts whose resolution the user's next `git commit` copies from the files into
 * the git folder.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "guard/readers.h"
#include "guard/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

static bool options_are_inert(struct str text)
{
	struct str line;

	while (str_next_line(&text, &line)) {
		struct str at = str_trim(line);
		size_t equals = str_find(at, STR("="), 0);
		if (!str_starts(at, STR("strategy")) || equals == (size_t)-1)
			continue;
		if (str_is(str_trim(str_part(at, 0, equals)), "strategy") &&
		    !git_text_strategy_is_own(str_part(at, equals + 1, at.size)))
			return false;
	}
	return true;
}

struct work {
	const char *folder, *name;
	size_t max;
	bool (*is_inert)(struct str text);
};

static const struct work works[] = {
	{"rebase-merge", "git-rebase-todo", GIT_TODO_MAX, git_text_todo_is_inert},
	{"rebase-merge", "strategy", GIT_POINTER_MAX, git_text_strategy_is_own},
	{"sequencer", "todo", GIT_TODO_MAX, git_text_todo_is_inert},
	{"sequencer", "opts", GIT_POINTER_MAX, options_are_inert},
	{"rebase-apply", "apply-opt", GIT_POINTER_MAX, git_text_apply_is_inert},
};

static void look_work(const struct scan_look *look, const struct work *work)
{
	char path[PATH_MAX];
	auto_close int fd = look_enter_or_mark(look, work->folder, path);
	const struct scan_look below = {look->scan, fd, path};
	struct buf text;
	struct stat st;

	if (fd < 0)
		return;
	buf_init(&text, work->max);
	enum look_found found = look_read(&below, work->name, work->max, &text, &st);
	if (found == LOOK_ODD)
		look_mark_stat(look, work->folder, &st);
	else if (found == LOOK_READ && !work->is_inert(buf_str(&text)))
		look_mark(look, work->folder, buf_str(&text));
	buf_fini(&text);
}

/* Does PATH stay in the worktree, without a symlink on the way? */
static bool is_in_worktree(const struct git_folder *folder, const char *path)
{
	struct git_scan *scan = folder->look.scan;
	struct buf whole;
	struct stat st;
	const char *name;
	bool fine;

	if (path[0] == '\0' || path[0] == '/')
		return false;
	/*
	 * The worktree is not ours, so no command of the cell has made its symlinks. Only
	 * the text of PATH is checked.
	 */
	if (folder->worktree == NULL)
		return strcmp(path, "..") != 0 && strncmp(path, "../", 3) != 0 &&
		       look_is_straight(path);
	buf_init(&whole, PATH_MAX);
	fine = look_is_straight(path) && path_normal(folder->worktree, path, &whole) &&
	       path_within(whole.data, folder->worktree);
	auto_close int fd = fine ? git_scan_open_parent(scan, whole.data, &name) : -1;
	/*
	 * A symlink among the folders of the path is refused. A missing folder leads
	 * nowhere and is harmless.
	 */
	if (fine)
		fine = fd >= 0 ? fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
					 !S_ISLNK(st.st_mode)
			       : errno == ENOENT;
	buf_fini(&whole);
	return fine;
}

void git_scan_resolutions(const struct git_folder *folder)
{
	struct str rest, path;
	struct buf text;
	struct stat st;
	bool fine = true;

	buf_init(&text, GIT_TODO_MAX);
	enum look_found found =
		look_read(&folder->look, "MERGE_RR", GIT_TODO_MAX, &text, &st);
	rest = buf_str(&text);
	while (found == LOOK_READ && fine && git_text_next_conflict(&rest, &path)) {
		auto_free char *copy = memory_copy_str(path);
		fine = is_in_worktree(folder, copy);
	}
	if (found == LOOK_ODD)
		look_mark_stat(&folder->look, "MERGE_RR", &st);
	else if (!fine)
		look_mark(&folder->look, "MERGE_RR", buf_str(&text));
	buf_fini(&text);
}

void git_scan_works(const struct scan_look *look)
{
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		look_work(look, &works[i]);
}
