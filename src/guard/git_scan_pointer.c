/*
 * git_scan_pointer: follows `.git` files and symlinks, and checks whether they lead to a
 * matching git folder.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "guard/readers.h"
#include "guard/scan.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Does the one-line file NAME lead to WANTED? */
static bool line_leads_to(const struct scan_look *look, const char *name, const char *wanted)
{
	struct buf path;
	bool leads;

	buf_init(&path, PATH_MAX);
	leads = look_line_path(look, name, look->path, &path) &&
		strcmp(path.data, wanted) == 0;
	buf_fini(&path);
	return leads;
}

/*
 * Put REPOSITORY of a PATH of the form REPOSITORY/worktrees/NAME there; false for any
 * other form.
 */
static bool repository_of(const char *path, struct buf *repository)
{
	(void)buf_add(repository, path, (size_t)(path_base_name(path) - path));
	if (!str_ends(buf_str(repository), STR("/worktrees/")))
		return false;
	buf_truncate(repository, repository->size - strlen("/worktrees/"));
	return true;
}

/*
 * Do the worktree's part LOOK and POINTER name each other, and is the repository where
 * git puts it? A part that is just being made has no `commondir` yet.
 */
static bool is_linked(const struct scan_look *look, const char *pointer,
		      const char *repository)
{
	struct stat st;

	return line_leads_to(look, "gitdir", pointer) &&
	       (!look_stat(look, "commondir", &st) ||
		line_leads_to(look, "commondir", repository));
}

/*
 * Note a pointer to a repository outside any `.git`. Usual pointers, of worktrees and
 * modules, lead into a `.git`. Any other pointer makes the programs of REPOSITORY run in
 * the pointer's folder.
 */
static void note_lead(struct git_scan *scan, const char *pointer, const char *repository)
{
	if (strstr(repository, "/.git/") != NULL ||
	    str_ends(str_of(repository), STR("/.git")))
		return;
	auto_free char *key = path_key(pointer);
	auto_free char *lead = path_key(repository);
	value_set_text(git_scan_list(&scan->leads), key, lead);
}

/* Is TARGET a git folder below the roots that matches POINTER? Then it is looked at. */
static bool target_holds(struct git_scan *scan, const char *target, const char *worktree,
			 const char *pointer, unsigned depth)
{
	auto_close int fd = look_open_path(scan, target);
	const struct scan_look look = {.scan = scan, .fd = fd, .path = target};
	struct buf repository;
	bool holds = fd >= 0;

	buf_init(&repository, PATH_MAX);
	if (holds && repository_of(target, &repository)) {
		auto_close int main_fd = look_open_path(scan, repository.data);
		holds = main_fd >= 0 && is_linked(&look, pointer, repository.data);
		if (holds) {
			note_lead(scan, pointer, repository.data);
			git_scan_folder(scan, main_fd, repository.data, NULL, depth);
		}
	} else if (holds) {
		note_lead(scan, pointer, target);
		git_scan_folder(scan, fd, target, worktree, depth);
	}
	buf_fini(&repository);
	return holds;
}

void git_scan_pointer(const struct scan_look *look, const struct stat *st, unsigned depth)
{
	struct git_scan *scan = look->scan;
	struct buf text, target, pointer;
	struct str path;
	struct stat read_st;
	bool holds;

	buf_init(&text, GIT_POINTER_MAX);
	buf_init(&target, PATH_MAX);
	buf_init(&pointer, PATH_MAX);
	(void)buf_addf(&pointer, "%s/.git", look->path);
	auto_free char *key = path_key(pointer.data);
	git_scan_note(scan, &scan->held, key);
	if (look_read(look, ".git", GIT_POINTER_MAX, &text, &read_st) == LOOK_READ) {
		holds = git_text_pointer(buf_str(&text), &path);
		if (holds) {
			auto_free char *copy = memory_copy_str(path);
			holds = path_normal(look->path, copy, &target) &&
				target_holds(scan, target.data, look->path, pointer.data,
					     depth) &&
				look_is_straight(copy);
		}
		if (!holds)
			look_mark(look, ".git", buf_str(&text));
	} else {
		look_mark_stat(look, ".git", st);
	}
	buf_fini(&pointer);
	buf_fini(&target);
	buf_fini(&text);
}

/* Look at the git folder that a symlink `.git` leads to, if it is below a root. */
void git_scan_pointer_link(const struct scan_look *look, unsigned depth)
{
	char target[PATH_MAX];
	struct buf path;
	ssize_t size = readlinkat(look->fd, ".git", target, sizeof(target) - 1);

	if (size <= 0)
		return;
	target[size] = '\0';
	buf_init(&path, PATH_MAX);
	if (path_normal(look->path, target, &path)) {
		auto_close int fd = look_open_path(look->scan, path.data);
		if (fd >= 0)
			git_scan_folder(look->scan, fd, path.data, look->path, depth);
	}
	buf_fini(&path);
}
