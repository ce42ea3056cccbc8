/*
 * git_scan_folder: one git folder (`.git`, a bare repository, a linked worktree's part): the
 * names in it that make git run a program or look elsewhere. See gitrepository-layout(5).
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "git/git_config.h"
#include "git/git_index.h"
#include "git/git_scan_parts.h"
#include "git/git_text.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* What every linked worktree's folder says of where the rest is. */
#define COMMON "../.."

enum {
	CONFIG_DEPTH = 10, /* of files that include each other: as git has it */
	SPARSE_DEPTH = 64, /* of folders that a sparse index leaves out and that are there */
};

struct folder {
	struct look look;
	const char *worktree;
	unsigned depth;
	bool sha256;
};

static void config_read(const struct look *look, const char *name, struct git_config *config)
{
	struct buf text;
	struct stat st;

	buf_init(&text, GIT_CONFIG_MAX);
	git_config_init(config);
	enum look_found found = look_read(look, name, GIT_CONFIG_MAX, &text, &st);
	if (found == LOOK_ODD)
		look_mark_stat(look, name, &st);
	if (found == LOOK_READ)
		git_config_read(buf_str(&text), config);
	if (config->active.size > 0)
		look_mark(look, name, buf_str(&config->active));
	buf_fini(&text);
}

/* The path that an active line of a configuration includes; a condition counts as met. */
static bool included_path(struct str line, struct str *path)
{
	static const struct str key = {".path=", 6};
	const bool conditional = str_starts(line, STR("includeif."));
	size_t at = str_find(line, key, 0);

	if (at == (size_t)-1 || (!conditional && !str_is(str_part(line, 0, at), "include")))
		return false;
	*path = str_part(line, at + key.size, line.size);
	return path->size > 0 && path->data[0] != '~';
}

/* Files that a configuration in FOLDER includes, where commands may write, are part of it. */
static void look_included(struct git_scan *scan, const char *folder,
			  const struct git_config *config, unsigned depth)
{
	struct str rest = buf_str(&config->active), line, named;

	while (depth < CONFIG_DEPTH && str_next_line(&rest, &line)) {
		struct git_config included;
		struct buf path;

		if (!included_path(line, &named))
			continue;
		auto_free char *copy = memory_copy_str(named);
		buf_init(&path, PATH_MAX);
		if (path_normal(folder, copy, &path) && path.size > 1) {
			const char *name;
			auto_close int fd = git_scan_open_parent(scan, path.data, &name);
			auto_free char *key = git_scan_key(path.data);
			auto_free char *parent = memory_copy(path.data);
			parent[name - path.data - 1] = '\0';
			const struct look look = {scan, fd, parent, 0};
			if (fd >= 0 && value_member(scan->pointers, key) == NULL) {
				value_set_boolean(scan->pointers, key, true);
				config_read(&look, name, &included);
				look_included(scan, parent, &included, depth + 1);
				git_config_fini(&included);
			}
		}
		buf_fini(&path);
	}
}

static void look_config(struct folder *folder, const char *name)
{
	struct git_config config;

	config_read(&folder->look, name, &config);
	look_included(folder->look.scan, folder->look.path, &config, 0);
	folder->sha256 = folder->sha256 || config.sha256;
	git_config_fini(&config);
}

static void each_hook(const struct look *look, const char *name, void *context)
{
	struct stat st;

	(void)context;
	if (!str_ends(str_of(name), STR(".sample")) && !look_is_aside(name) &&
	    look_stat(look, name, &st))
		look_mark_stat(look, name, &st);
}

static void each_name(const struct look *look, const char *name, void *context)
{
	struct stat st;

	(void)context;
	if (!look_is_aside(name) && look_stat(look, name, &st))
		look_mark_stat(look, name, &st);
}

/* NAME, a folder each of whose entries counts; anything but a folder counts itself. */
static void look_entries(const struct look *look, const char *name,
			 void (*each)(const struct look *, const char *, void *),
			 void *context)
{
	char path[PATH_MAX];
	struct stat st;

	if (!look_stat(look, name, &st))
		return;
	if (!S_ISDIR(st.st_mode)) {
		look_mark_stat(look, name, &st);
		return;
	}
	auto_close int fd = look_open(look, name);
	if (fd < 0 ||
	    snprintf(path, sizeof(path), "%s/%s", look->path, name) >= (int)sizeof(path))
		return;
	const struct look below = {look->scan, fd, path};
	look_names(&below, each, context);
}

static void look_info(const struct look *look)
{
	static const char *const names[] = {"attributes", "exclude"};
	char path[PATH_MAX];
	struct buf text;
	struct stat st;

	if (!look_stat(look, "info", &st))
		return;
	if (!S_ISDIR(st.st_mode)) {
		look_mark_stat(look, "info", &st);
		return;
	}
	auto_close int fd = look_open(look, "info");
	if (fd < 0 ||
	    snprintf(path, sizeof(path), "%s/info", look->path) >= (int)sizeof(path))
		return;
	const struct look info = {look->scan, fd, path};
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

/* ---- interrupted work, which the user's `--continue` goes on with ---- */

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
};

static void look_work(const struct look *look, const struct work *work)
{
	struct buf text;
	struct stat st;

	if (!look_stat(look, work->folder, &st))
		return;
	if (!S_ISDIR(st.st_mode)) {
		look_mark_stat(look, work->folder, &st);
		return;
	}
	auto_close int fd = look_open(look, work->folder);
	if (fd < 0)
		return;
	const struct look below = {look->scan, fd, look->path};
	buf_init(&text, work->max);
	enum look_found found = look_read(&below, work->name, work->max, &text, &st);
	if (found == LOOK_ODD)
		look_mark_stat(look, work->folder, &st);
	else if (found == LOOK_READ && !work->is_inert(buf_str(&text)))
		look_mark(look, work->folder, buf_str(&text));
	buf_fini(&text);
}

static void look_works(const struct look *look)
{
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		look_work(look, &works[i]);
}

/* ---- nested repositories ---- */

static bool each_link(void *context, struct str path)
{
	struct value *list = context;
	auto_free char *name = memory_copy_str(path);
	auto_free char *key = git_scan_key(name);

	value_append(list, value_new_text(key));
	return value_count(list) <= GIT_SCAN_LINKS;
}

struct sparse {
	unsigned repository, depth; /* of repositories, of folders */
};

static void each_sparse(const struct look *look, const char *name, void *context)
{
	const struct sparse *above = context;
	const struct sparse sparse = {above->repository, above->depth + 1};
	char path[PATH_MAX];

	if ((look->type != DT_DIR && look->type != DT_UNKNOWN) || strcmp(name, ".git") == 0 ||
	    snprintf(path, sizeof(path), "%s/%s", look->path, name) >= (int)sizeof(path))
		return;
	auto_close int fd = look_open(look, name);
	if (fd < 0)
		return;
	if (sparse.depth > SPARSE_DEPTH) {
		(void)look_trouble(look, E2BIG, name);
		return;
	}
	const struct look below = {look->scan, fd, path, DT_DIR};
	git_scan_worktree(look->scan, fd, path, sparse.repository);
	look_names(&below, each_sparse, (void *)(uintptr_t)&sparse);
}

/*
 * KEY is a gitlink, or ends in a slash: a folder that a sparse index leaves out. Git looks up
 * what is in there when it is in the way, gitlinks too; most often it is not there at all.
 */
static void link_visit(const struct folder *folder, const char *key)
{
	auto_free char *link = git_scan_path(key);
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
		const struct look look = {scan, fd, path.data, DT_DIR};
		if (fd >= 0)
			git_scan_worktree(scan, fd, path.data, folder->depth + 1);
		if (fd >= 0 && is_sparse)
			look_names(&look, each_sparse, (void *)(uintptr_t)&sparse);
	}
	buf_fini(&path);
}

/* The gitlinks of the index NAME into LIST; NEXT becomes the name of its other part. */
static bool index_read(struct folder *folder, const char *name, struct value *list,
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
	/* What cannot be read may hold any gitlink: not seeing it is trouble. */
	if (found == LOOK_ODD)
		(void)look_trouble(&folder->look, EFBIG, name);
	else if (found == LOOK_READ)
		fine = git_index_read(&reader, buf_str(&text), &err) ||
		       look_trouble(&folder->look, err.code, name);
	buf_fini(&text);
	(void)snprintf(next, 2 * GIT_HASH_MAX + sizeof("sharedindex."), "sharedindex.%s",
		       reader.shared);
	return fine && reader.shared[0] != '\0';
}

/*
 * Reading takes some 10 ns for each file of the project; one that was read before the command
 * and did not change is not read again. A shared part never changes: its name is its hash.
 */
static struct value *index_links(struct folder *folder, const char *path)
{
	char next[2 * GIT_HASH_MAX + sizeof("sharedindex.")];
	struct value *list = value_new_array();
	struct buf print;
	struct stat st;

	if (!look_stat(&folder->look, "index", &st))
		return list;
	buf_init(&print, PATH_MAX);
	look_fingerprint(&st, &print);
	auto_free char *key = git_scan_key(path);
	const struct value *known = value_member(folder->look.scan->known_indexes, key);
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

static void look_index(struct folder *folder)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/index", folder->look.path) >= (int)sizeof(path))
		return;
	struct value *list = index_links(folder, path);
	auto_free char *key = git_scan_key(path);
	value_set(folder->look.scan->indexes, key, list);
	for (size_t i = 1; i < value_count(list); i++)
		link_visit(folder, value_text(value_item(list, i)));
}

/* ---- linked worktrees ---- */

static void look_common(const struct look *look)
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

/* A worktree's part of the repository CONTEXT. */
static void each_worktree(const struct look *all, const char *name, void *context)
{
	const struct folder *above = context;
	char path[PATH_MAX];
	struct buf pointer;
	struct stat st;

	if (!look_stat(all, name, &st) ||
	    snprintf(path, sizeof(path), "%s/%s", all->path, name) >= (int)sizeof(path))
		return;
	if (!S_ISDIR(st.st_mode)) {
		if (S_ISLNK(st.st_mode) && !look_is_aside(name))
			look_mark_stat(all, name, &st);
		return;
	}
	auto_close int fd = look_open(all, name);
	if (fd < 0)
		return;
	struct folder folder = {.look = {all->scan, fd, path},
				.depth = above->depth,
				.sha256 = above->sha256};
	look_common(&folder.look);
	look_config(&folder, "config.worktree");
	look_works(&folder.look);
	git_scan_links(&folder.look);
	buf_init(&pointer, PATH_MAX);
	if (look_line_path(&folder.look, "gitdir", path, &pointer) &&
	    str_ends(buf_str(&pointer), STR("/.git"))) {
		buf_truncate(&pointer, pointer.size - strlen("/.git"));
		folder.worktree = pointer.data;
		look_index(&folder);
		auto_close int tree = look_open_path(all->scan, pointer.data);
		if (tree >= 0)
			git_scan_worktree(all->scan, tree, pointer.data, above->depth + 1);
	}
	buf_fini(&pointer);
}

void git_scan_folder(struct git_scan *scan, int fd, const char *path,
		     const char *worktree, unsigned depth)
{
	struct folder folder = {.look = {scan, fd, path},
				.worktree = worktree,
				.depth = depth};
	struct stat st;

	auto_free char *key = git_scan_key(path);
	if (value_member(scan->repositories, key) != NULL)
		return;
	if (depth > GIT_SCAN_DEPTH ||
	    value_count(scan->repositories) >= GIT_SCAN_REPOSITORIES) {
		(void)look_trouble(&folder.look, E2BIG, "");
		return;
	}
	value_set_boolean(scan->repositories, key, true);
	/* Only a linked worktree's part has one. */
	if (look_stat(&folder.look, "commondir", &st))
		look_mark_stat(&folder.look, "commondir", &st);
	look_config(&folder, "config");
	look_config(&folder, "config.worktree");
	look_entries(&folder.look, "hooks", each_hook, NULL);
	look_entries(&folder.look, "modules", each_name, NULL);
	/* The old places of remotes, read for names that the configuration does not have. */
	look_entries(&folder.look, "remotes", each_name, NULL);
	look_entries(&folder.look, "branches", each_name, NULL);
	look_info(&folder.look);
	look_works(&folder.look);
	git_scan_links(&folder.look);
	if (worktree != NULL)
		look_index(&folder);
	look_entries(&folder.look, "worktrees", each_worktree, &folder);
}
