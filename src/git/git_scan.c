/* git_scan: where repositories are looked for, and whether their pointers hold. */
#include "git/git_scan.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "git/git_index.h"
#include "git/git_scan_parts.h"
#include "git/git_text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void git_scan_init(struct git_scan *scan, const struct git_scan_root *roots, size_t count)
{
	*scan = (struct git_scan){
		.roots = roots,
		.root_count = count,
		.repositories = value_new_object(),
		.pointers = value_new_object(),
		.dangers = value_new_object(),
		.indexes = value_new_object(),
		.files = value_new_array(),
	};
}

void git_scan_fini(struct git_scan *scan)
{
	value_free(scan->repositories);
	value_free(scan->pointers);
	value_free(scan->dangers);
	value_free(scan->indexes);
	value_free(scan->files);
}

/* ---- pointers ---- */

/* Does the one-line file NAME lead to WANTED? */
static bool line_leads_to(const struct look *look, const char *name, const char *wanted)
{
	struct buf path;
	bool leads;

	buf_init(&path, PATH_MAX);
	leads = look_line_path(look, name, look->path, &path) &&
		strcmp(path.data, wanted) == 0;
	buf_fini(&path);
	return leads;
}

/* The part of REPOSITORY/worktrees/NAME that is REPOSITORY; false when PATH has no such form. */
static bool repository_of(const char *path, struct buf *repository)
{
	(void)buf_add(repository, path, (size_t)(path_base_name(path) - path));
	if (!str_ends(buf_str(repository), STR("/worktrees/")))
		return false;
	buf_truncate(repository, repository->size - strlen("/worktrees/"));
	return true;
}

/*
 * A worktree's part (LOOK) and the pointer must name each other, and the rest be where git puts
 * it. A part that is only being made has no `commondir` yet.
 */
static bool is_linked(const struct look *look, const char *pointer, const char *repository)
{
	struct stat st;

	return line_leads_to(look, "gitdir", pointer) &&
	       (!look_stat(look, "commondir", &st) ||
		line_leads_to(look, "commondir", repository));
}

/* Does what the pointer leads to lie below the roots and hold? It is looked at, then. */
static bool target_holds(struct git_scan *scan, const char *target, const char *worktree,
			 const char *pointer, unsigned depth)
{
	auto_close int fd = look_open_path(scan, target);
	const struct look look = {.scan = scan, .fd = fd, .path = target};
	struct buf repository;
	bool holds = fd >= 0;

	buf_init(&repository, PATH_MAX);
	if (holds && repository_of(target, &repository)) {
		auto_close int main_fd = look_open_path(scan, repository.data);
		holds = main_fd >= 0 && is_linked(&look, pointer, repository.data);
		if (holds)
			git_scan_folder(scan, main_fd, repository.data, NULL, depth);
	} else if (holds) {
		git_scan_folder(scan, fd, target, worktree, depth);
	}
	buf_fini(&repository);
	return holds;
}

static void look_pointer(const struct look *look, const struct stat *st, unsigned depth)
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
	auto_free char *key = git_scan_key(pointer.data);
	value_set_boolean(scan->pointers, key, true);
	if (look_read(look, ".git", GIT_POINTER_MAX, &text, &read_st) == LOOK_READ) {
		holds = git_text_pointer(buf_str(&text), &path);
		if (holds) {
			auto_free char *copy = memory_copy_str(path);
			holds = path_normal(look->path, copy, &target) &&
				target_holds(scan, target.data, look->path, pointer.data,
					     depth);
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

/* A `.git` that is a symlink: what it leads to counts as long as it lies below a root. */
static void look_link(const struct look *look, unsigned depth)
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

/* ---- folders that may be repositories ---- */

/* HEAD, objects and refs: git takes such a folder for a repository when it stands in it. */
static bool is_bare(const struct look *look)
{
	struct stat st;

	return look_stat(look, "HEAD", &st) && look_stat(look, "objects", &st) &&
	       look_stat(look, "refs", &st);
}

void git_scan_worktree(struct git_scan *scan, int fd, const char *path, unsigned depth)
{
	const struct look look = {scan, fd, path};
	char inside[PATH_MAX];
	struct stat st;

	if (is_bare(&look))
		git_scan_folder(scan, fd, path, NULL, depth);
	if (!look_stat(&look, ".git", &st))
		return;
	if (S_ISREG(st.st_mode)) {
		look_pointer(&look, &st, depth);
		return;
	}
	if (S_ISLNK(st.st_mode))
		look_link(&look, depth);
	if (!S_ISDIR(st.st_mode)) {
		look_mark_stat(&look, ".git", &st);
		return;
	}
	auto_close int folder = look_open(&look, ".git");
	if (folder >= 0 &&
	    snprintf(inside, sizeof(inside), "%s/.git", path) < (int)sizeof(inside))
		git_scan_folder(scan, folder, inside, path, depth);
}

static void each_top(const struct look *look, const char *name, void *context)
{
	char path[PATH_MAX];

	(void)context;
	if (look->scan->wants_files)
		git_scan_file(look, name);
	/* A repository that was put away whole is left; other folders may be called what they like. */
	if (strcmp(name, ".git") == 0 ||
	    str_starts(str_of(name), STR(".git" GIT_QUARANTINE)) ||
	    (look->type != DT_DIR && look->type != DT_UNKNOWN) ||
	    (!look_may_hold(look, name, ".git") && !look_may_hold(look, name, "HEAD")) ||
	    snprintf(path, sizeof(path), "%s/%s", look->path, name) >= (int)sizeof(path))
		return;
	auto_close int fd = look_open(look, name);
	if (fd >= 0)
		git_scan_worktree(look->scan, fd, path, 1);
}

static void look_file(struct git_scan *scan, const char *path)
{
	auto_free char *folder = memory_copy(path);
	const char *name = path_base_name(path);
	struct stat st;

	folder[name - path - 1] = '\0';
	auto_close int fd = look_open_path(scan, folder);
	const struct look look = {scan, fd, folder};
	if (fd >= 0 && look_stat(&look, name, &st))
		look_mark_stat(&look, name, &st);
}

bool git_scan_run(struct git_scan *scan, const struct value *watched,
		  const struct value *files, struct err *err)
{
	for (size_t i = 0; i < scan->root_count; i++) {
		const struct git_scan_root *root = &scan->roots[i];
		const struct look look = {scan, root->fd, root->path};

		git_scan_worktree(scan, root->fd, root->path, 0);
		look_names(&look, each_top, NULL);
	}
	for (size_t i = 0; i < value_count(watched); i++) {
		auto_free char *path = git_scan_path(value_text(value_item(watched, i)));
		auto_close int fd = path != NULL ? look_open_path(scan, path) : -1;

		if (fd >= 0)
			git_scan_worktree(scan, fd, path, 1);
	}
	for (size_t i = 0; i < value_count(files); i++) {
		auto_free char *path = git_scan_path(value_text(value_item(files, i)));
		if (path != NULL && path[0] == '/')
			look_file(scan, path);
	}
	return scan->trouble.text[0] == '\0' ||
	       err_set(err, scan->trouble.code, "%s", scan->trouble.text);
}

int git_scan_open_parent(const struct git_scan *scan, const char *path, const char **name)
{
	struct git_scan own = *scan;
	const char *last = path_base_name(path);
	auto_free char *parent = memory_copy(path);

	parent[last - path - 1] = '\0';
	*name = last;
	return look_open_path(&own, parent);
}

/* ---- the repository that holds a root ---- */

struct above {
	const char *worktree, *folder;
	struct value *list;
};

static bool above_link(void *context, struct str path)
{
	const struct above *above = context;
	struct buf text;

	if (str_ends(path, STR("/")))
		return true;
	if (value_count(above->list) >= GIT_SCAN_LINKS)
		return false;
	buf_init(&text, PATH_MAX);
	if (buf_addf(&text, "%s/%.*s", above->worktree, (int)path.size, path.data) &&
	    path_within(text.data, above->folder)) {
		auto_free char *key = git_scan_key(text.data);
		value_append(above->list, value_new_text(key));
	}
	buf_fini(&text);
	return true;
}

static bool above_read(const struct above *above, const char *index, struct err *err)
{
	struct git_index_reader reader = {.link = above_link,
					  .context = (void *)(uintptr_t)above};
	struct buf text;
	struct stat st;
	bool fine = true;

	if (lstat(index, &st) < 0 || !S_ISREG(st.st_mode))
		return true;
	buf_init(&text, GIT_INDEX_MAX);
	/* An index of long hashes does not fit short ones: one of the two is right. */
	if (fd_read_file(index, GIT_INDEX_MAX, &text, NULL)) {
		fine = git_index_read(&reader, buf_str(&text), err);
		reader.sha256 = !fine;
		fine = fine || git_index_read(&reader, buf_str(&text), err);
	}
	buf_fini(&text);
	return fine;
}

bool git_scan_above(const char *folder, struct value *list, struct err *err)
{
	auto_free char *at = memory_copy(folder);
	char index[PATH_MAX];
	struct stat st;

	for (char *slash = strrchr(at, '/'); slash != NULL && slash != at;
	     slash = strrchr(at, '/')) {
		*slash = '\0';
		const struct above above = {at, folder, list};

		if (snprintf(index, sizeof(index), "%s/.git", at) >= (int)sizeof(index))
			return true;
		if (lstat(index, &st) < 0)
			continue;
		if (snprintf(index, sizeof(index), "%s/.git/index", at) >=
		    (int)sizeof(index))
			return true;
		return above_read(&above, index, err);
	}
	return true;
}
