/* git_scan: decides where to look for repositories. */
#include "guard/git_scan.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "guard/git_scan_parts.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void git_scan_init(struct git_scan *scan, const struct git_scan_root *roots, size_t count)
{
	*scan = (struct git_scan){.roots = roots, .root_count = count};
}

void git_scan_fini(struct git_scan *scan)
{
	git_scan_forget(scan);
	value_free(scan->files);
	value_free(scan->left);
	value_free(scan->nested);
	value_free(scan->places);
	free(scan->missed);
}

void git_scan_forget(struct git_scan *scan)
{
	struct value **const lists[] = {&scan->repositories, &scan->held, &scan->leads,
					&scan->dangers, &scan->indexes};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		value_free(*lists[i]);
		*lists[i] = NULL;
	}
}

const struct value *git_scan_known(const struct git_scan *scan, const char *key)
{
	const struct value *known = value_member(scan->known_indexes, key);

	return known != NULL ? known : value_member(scan->more_indexes, key);
}

struct value *git_scan_list(struct value **list)
{
	if (*list == NULL)
		*list = value_new_object();
	return *list;
}

void git_scan_note(const struct git_scan *scan, struct value **list, const char *key)
{
	if (value_member(*list, key) == NULL)
		value_set_boolean(git_scan_list(list), key, !scan->goes_through);
}

const char *const git_scan_repository[] = {"HEAD", "objects", "refs", NULL};

static bool is_whole(const struct scan_look *look)
{
	struct stat st;

	for (const char *const *name = git_scan_repository; *name != NULL; name++) {
		if (!look_stat(look, *name, &st))
			return false;
	}
	return true;
}

/*
 * Is LOOK a linked worktree's part of a repository? Such a part is looked at together
 * with its repository.
 */
static bool is_part(const struct scan_look *look)
{
	struct buf above;
	bool part;

	buf_init(&above, PATH_MAX);
	part = look_line_path(look, "commondir", look->path, &above) &&
	       str_starts(str_of(look->path), buf_str(&above)) &&
	       str_starts(str_of(look->path + above.size), STR("/worktrees/"));
	auto_close int fd = part ? look_open_path(look->scan, above.data) : -1;
	const struct scan_look repository = {look->scan, fd, above.data};
	part = fd >= 0 && is_whole(&repository);
	buf_fini(&above);
	return part;
}

/*
 * A git folder with a `commondir` needs no more than HEAD, because git reads the rest
 * there.
 */
static bool is_bare(const struct scan_look *look)
{
	struct stat st;

	return is_whole(look) || (look_stat(look, "HEAD", &st) &&
				  look_stat(look, "commondir", &st) && !is_part(look));
}

void git_scan_worktree(struct git_scan *scan, int fd, const char *path, unsigned depth)
{
	const struct scan_look look = {scan, fd, path};
	char inside[PATH_MAX];
	struct stat st;

	if (is_bare(&look))
		git_scan_folder(scan, fd, path, NULL, depth);
	const bool has_git = look_stat(&look, ".git", &st);
	if (has_git || depth == 0)
		git_scan_protected(&look, depth == 0);
	if (!has_git)
		return;
	if (S_ISREG(st.st_mode)) {
		git_scan_pointer(&look, &st, depth);
		return;
	}
	if (S_ISLNK(st.st_mode))
		git_scan_pointer_link(&look, depth);
	if (!S_ISDIR(st.st_mode)) {
		look_mark_stat(&look, ".git", &st);
		return;
	}
	auto_close int folder = look_enter(&look, ".git", inside);
	if (folder >= 0)
		git_scan_folder(scan, folder, inside, path, depth);
}

static void each_top(const struct scan_look *look, const char *name, void *context)
{
	char path[PATH_MAX];

	(void)context;
	if (look->scan->wants_files)
		git_scan_file(look, name);
	/*
	 * Folders with our mark are not left out: anybody may choose such a name, and no
	 * folder is moved aside here.
	 */
	if (strcmp(name, ".git") == 0 || (look->type != DT_DIR && look->type != DT_UNKNOWN) ||
	    (!look_may_hold(look, name, ".git") && !look_may_hold(look, name, "HEAD")))
		return;
	auto_close int fd = look_enter(look, name, path);
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
	const struct scan_look look = {scan, fd, folder};
	if (fd >= 0 && look_stat(&look, name, &st))
		look_mark_stat(&look, name, &st);
}

void git_scan_watch(struct git_scan *scan, const struct value *watched)
{
	for (size_t i = 0; i < value_count(watched); i++) {
		auto_free char *path = path_of_key(value_text(value_item(watched, i)));
		auto_close int fd = path != NULL ? look_open_path(scan, path) : -1;

		if (fd >= 0)
			git_scan_worktree(scan, fd, path, 1);
	}
}

/*
 * This search comes last, because a repository that is found in another way counts as
 * such.
 */
void git_scan_whole(struct git_scan *scan)
{
	scan->goes_through = true;
	for (size_t i = 0; value_count(scan->deep) > 0 && i < scan->root_count; i++) {
		auto_free char *key = path_key(scan->roots[i].path);

		if (value_has_text(scan->deep, key))
			git_scan_deep(scan, &scan->roots[i]);
	}
}

bool git_scan_run(struct git_scan *scan, const struct value *watched,
		  const struct value *files, struct err *err)
{
	for (size_t i = 0; i < scan->root_count; i++) {
		const struct git_scan_root *root = &scan->roots[i];
		const struct scan_look look = {scan, root->fd, root->path};

		git_scan_worktree(scan, root->fd, root->path, 0);
		look_names(&look, each_top, NULL);
	}
	git_scan_watch(scan, watched);
	for (size_t i = 0; i < value_count(files); i++) {
		auto_free char *path = path_of_key(value_text(value_item(files, i)));
		if (path != NULL && path[0] == '/')
			look_file(scan, path);
	}
	git_scan_whole(scan);
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
