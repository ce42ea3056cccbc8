/*
 * git_scan_index: looks at the repositories that the index of a git folder names, and at
 * those in folders that a sparse index leaves out.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "guard/readers.h"
#include "guard/scan.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
	SPARSE_DEPTH = 64
}; /* levels of folders that a sparse index leaves out and that exist */

static bool each_link(void *context, struct str path)
{
	struct value *list = context;
	auto_free char *name = memory_copy_str(path);
	auto_free char *key = path_key(name);

	value_append(list, value_new_text(key));
	return value_count(list) <= GIT_SCAN_LINKS;
}

struct sparse {
	unsigned repository, depth; /* depth of repositories, and of folders */
};

static void each_sparse(const struct scan_look *look, const char *name, void *context)
{
	const struct sparse *above = context;
	const struct sparse sparse = {above->repository, above->depth + 1};
	char path[PATH_MAX];

	if ((look->type != DT_DIR && look->type != DT_UNKNOWN) || strcmp(name, ".git") == 0)
		return;
	auto_close int fd = look_enter(look, name, path);
	if (fd < 0)
		return;
	if (sparse.depth > SPARSE_DEPTH) {
		(void)look_trouble(look, E2BIG, name);
		return;
	}
	const struct scan_look below = {look->scan, fd, path, DT_DIR};
	git_scan_worktree(look->scan, fd, path, sparse.repository);
	look_names(&below, each_sparse, (void *)(uintptr_t)&sparse);
}

/*
 * Look at KEY, a gitlink, or with a slash at its end a folder that a sparse index leaves
 * out. Such a folder is usually missing. When it exists, git looks at its files and
 * gitlinks.
 */
static void link_visit(const struct git_folder *folder, const char *key)
{
	auto_free char *link = path_of_key(key);
	const size_t size = link != NULL ? strlen(link) : 0;
	const bool is_sparse = size > 0 && link[size - 1] == '/';
	const struct sparse sparse = {folder->depth + 1, 0};
	struct git_scan *scan = folder->look.scan;
	struct buf path;

	if (is_sparse)
		link[size - 1] = '\0';
	buf_init(&path, PATH_MAX);
	if (link != NULL && buf_addf(&path, "%s/%s", folder->worktree, link)) {
		auto_close int fd = look_open_path(scan, path.data);
		const struct scan_look look = {scan, fd, path.data, DT_DIR};
		if (fd >= 0)
			git_scan_worktree(scan, fd, path.data, folder->depth + 1);
		if (fd >= 0 && is_sparse)
			look_names(&look, each_sparse, (void *)(uintptr_t)&sparse);
	}
	buf_fini(&path);
}

/* Git refuses such an index too. The error tells the way to repair it. */
static bool index_trouble(struct git_folder *folder, const char *name, const struct err *why)
{
	struct err *trouble = &folder->look.scan->trouble;

	if (trouble->text[0] == '\0')
		(void)err_set(trouble, why->code,
			      "%s/%s: %s; removing it and running git reset makes a new one of the "
			      "last commit (files stay as they are)",
			      folder->look.path, name, why->text);
	return false;
}

/*
 * Put the gitlinks of the index NAME into LIST. True: the index is split, and NEXT
 * becomes the name of its other part.
 */
static bool index_read(struct git_folder *folder, const char *name, struct value *list,
		       char next[2 * GIT_HASH_MAX + sizeof("sharedindex.")])
{
	struct git_index_reader reader = {.sha256 = folder->sha256,
					  .link = each_link,
					  .context = list};
	struct err err = {0};
	struct buf text;
	struct stat st;
	bool fine = false;

	buf_init(&text, GIT_INDEX_MAX);
	enum look_found found = look_read(&folder->look, name, GIT_INDEX_MAX, &text, &st);
	/* An index that cannot be read may have any gitlinks, so this is an error. */
	if (found == LOOK_ODD)
		(void)look_trouble(&folder->look, EFBIG, name);
	else if (found == LOOK_READ)
		fine = git_index_read(&reader, buf_str(&text), &err) ||
		       index_trouble(folder, name, &err);
	/* Git checks out such names unchanged, even through ".." and into its hooks. */
	if (reader.unsound)
		look_mark(&folder->look, name, buf_str(&text));
	buf_fini(&text);
	(void)snprintf(next, 2 * GIT_HASH_MAX + sizeof("sharedindex."), "sharedindex.%s",
		       reader.shared);
	return fine && reader.shared[0] != '\0';
}

/*
 * The gitlinks of the index PATH. Reading takes some 10 ns for each file of the project,
 * so an index that has not changed since an earlier scan is not read again. A shared part
 * never changes, because its name is its hash.
 */
static struct value *index_links(struct git_folder *folder, const char *path)
{
	char next[2 * GIT_HASH_MAX + sizeof("sharedindex.")];
	struct value *list = value_new_array();
	struct buf print;
	struct stat st;

	if (!look_stat(&folder->look, "index", &st))
		return list;
	buf_init(&print, PATH_MAX);
	look_fingerprint(&st, &print);
	auto_free char *key = path_key(path);
	const struct value *known = git_scan_known(folder->look.scan, key);
	if (str_equal(value_str(value_item(known, 0)), buf_str(&print))) {
		value_free(list);
		list = value_copy(known);
	} else {
		value_append(list, value_new_str(buf_str(&print)));
		if (index_read(folder, "index", list, next))
			(void)index_read(folder, next, list, next);
	}
	buf_fini(&print);
	return list;
}

void git_scan_index(struct git_folder *folder)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/index", folder->look.path) >= (int)sizeof(path))
		return;
	struct value *list = index_links(folder, path);
	auto_free char *key = path_key(path);
	value_set(git_scan_list(&folder->look.scan->indexes), key, list);
	for (size_t i = 1; folder->worktree != NULL && i < value_count(list); i++)
		link_visit(folder, value_text(value_item(list, i)));
}
