/*
 * checkpoint: the front's own tool behind undo. It looks at the workspace, compares it
 * with the list made last, and keeps the contents that neither that list's store nor git
 * holds. fds: the old list, a file for the new list, the log that takes copies and, for a
 * step, the changes.
 */

#include "tools/looks/checkpoint.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/path.h"
#include "files/files.h"
#include "files/record.h"
#include "guard/readers.h"
#include "guard/scan.h"
#include "tool/call.h"
#include "tool/secret.h"
#include "tools/looks/rows.h"
#include "tools/search/walk.h"
#include "tools/tools.h"
#include "undo/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_too_many(struct err *err)
{
	return err_set(err, E2BIG, "the workspace has over %d files", UNDO_ROWS_MAX);
}

/* A failure without a reason is that of a list which is full. */
static bool tell_full(struct err *err)
{
	return err->text[0] == '\0' && is_too_many(err);
}

/* Rows for the files in the git folder of the workspace. */

enum {
	/* of folders in a git folder, because names of refs have slashes */
	GIT_DEPTH = 24,
	GIT_ROWS_MAX = 200000, /* refs and their logs; objects are counted separately */
	OBJECTS_MAX = 200000,
	GIT_LINKED_BYTES = 41, /* "ab/" and 38 digits */
};

/* Names in the git folder without rows, except the objects themselves; NULL-ended. */
static const char *const checkpoint_unlisted[] = {"objects", "hooks", "modules", "lfs",
						  NULL};

static bool is_left_out(const char *name, unsigned depth)
{
	struct str text = str_of(name);

	for (size_t i = 0; depth == 0 && checkpoint_unlisted[i] != NULL; i++) {
		if (strcmp(name, checkpoint_unlisted[i]) == 0)
			return true;
	}
	return str_ends(text, STR(".lock")) || strcmp(name, ".") == 0 ||
	       strcmp(name, "..") == 0;
}

static bool look_below(struct checkpoint *checkpoint, int folder, const char *path,
		       unsigned depth, size_t *rows);

static bool look_name(struct checkpoint *checkpoint, int folder, const char *path,
		      const char *name, unsigned depth, size_t *rows)
{
	char whole[PATH_MAX];
	struct undo_state state;
	struct stat st;
	int size = snprintf(whole, sizeof(whole), "%s/%s", path, name);

	if (size >= (int)sizeof(whole) ||
	    fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	undo_state_of(&st, &state);
	if (state.kind == UNDO_ABSENT)
		return true;
	if (++*rows > GIT_ROWS_MAX ||
	    !undo_list_add(&checkpoint->now, (struct str){whole, (size_t)size}, &state))
		return false;
	if (state.kind != UNDO_FOLDER || depth >= GIT_DEPTH)
		return true;
	auto_close int below = fd_open_beneath(folder, name, O_RDONLY | O_DIRECTORY);
	return below < 0 || look_below(checkpoint, below, whole, depth + 1, rows);
}

/* Watch a folder of git before it is listed. */
static void watch_git(const struct checkpoint *checkpoint, int folder, const char *path)
{
	if (checkpoint->watcher != NULL)
		(void)watcher_add(checkpoint->watcher, folder, str_of(path), WATCHED_GIT);
}

static bool look_below(struct checkpoint *checkpoint, int folder, const char *path,
		       unsigned depth, size_t *rows)
{
	watch_git(checkpoint, folder, path);
	DIR *names = fd_open_names(folder);
	bool fine = true;

	if (names == NULL)
		return true;
	for (const struct dirent *at = readdir(names); fine && at != NULL;
	     at = readdir(names)) {
		if (!is_left_out(at->d_name, depth))
			fine = look_name(checkpoint, folder, path, at->d_name, depth, rows);
	}
	(void)closedir(names);
	return fine;
}

/* A row of the old list stays as it is. */
static bool copy_row(void *context, const struct undo_row *row)
{
	struct checkpoint *checkpoint = context;

	return undo_list_add(&checkpoint->now, row->path, &row->state);
}

/*
 * Objects never change, so only the times of the folder tell whether its names must be
 * read.
 */
static bool look_objects_in(struct checkpoint *checkpoint, int objects, const char *name,
			    size_t *count)
{
	char prefix[64], path[PATH_MAX];
	struct undo_state state;
	struct stat st;
	bool fine = true;
	int size = snprintf(prefix, sizeof(prefix), OBJECTS_PATH "%s/", name);
	struct str folder_path = {prefix, (size_t)size - 1};

	auto_close int folder = fd_open_beneath(objects, name, O_RDONLY | O_DIRECTORY);
	if (folder < 0 || fstat(folder, &st) < 0)
		return true;
	undo_state_of(&st, &state);
	watch_git(checkpoint, folder, prefix);
	const struct undo_state *old = rows_state_before(checkpoint, folder_path);
	bool same = old != NULL && old->inode == state.inode &&
		    old->ctime_ns == state.ctime_ns && old->mtime_ns == state.mtime_ns;
	if (!undo_list_add(&checkpoint->now, folder_path, &state))
		return false;
	if (same)
		return rows_each_before(checkpoint, (struct str){prefix, (size_t)size},
					copy_row, checkpoint);
	DIR *names = fd_open_names(folder);
	if (names == NULL)
		return true;
	for (const struct dirent *at = readdir(names); fine && at != NULL;
	     at = readdir(names)) {
		size_t length = strlen(at->d_name);
		/* Skip files that are being written, and marks that git leaves. */
		if (at->d_name[0] == '.' || strncmp(at->d_name, "tmp_", 4) == 0 ||
		    str_ends(str_of(at->d_name), STR(".keep")) ||
		    (strcmp(name, "pack") != 0 && length + 3 < GIT_LINKED_BYTES) ||
		    fstatat(folder, at->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		undo_state_of(&st, &state);
		size = snprintf(path, sizeof(path), "%s%s", prefix, at->d_name);
		fine = ++*count <= OBJECTS_MAX &&
		       undo_list_add(&checkpoint->now, (struct str){path, (size_t)size},
				     &state);
	}
	(void)closedir(names);
	return fine;
}

static bool look_objects(struct checkpoint *checkpoint, int git)
{
	auto_close int objects = fd_open_beneath(git, "objects", O_RDONLY | O_DIRECTORY);
	struct undo_state state;
	size_t count = 0;
	char name[4];
	struct stat st;

	if (objects < 0 || fstat(objects, &st) < 0)
		return true;
	undo_state_of(&st, &state);
	watch_git(checkpoint, objects, ".git/objects");
	if (!undo_list_add(&checkpoint->now, STR(".git/objects"), &state))
		return false;
	for (unsigned i = 0; i < 256; i++) {
		(void)snprintf(name, sizeof(name), "%02x", i);
		if (!look_objects_in(checkpoint, objects, name, &count))
			return false;
	}
	if (!look_objects_in(checkpoint, objects, "pack", &count))
		return false;
	/* The files that name other places of objects. */
	auto_close int info = fd_open_beneath(objects, "info", O_RDONLY | O_DIRECTORY);
	if (info >= 0)
		watch_git(checkpoint, info, ".git/objects/info");
	return info < 0 ||
	       look_name(checkpoint, info, ".git/objects/info", "alternates", 1, &count);
}

/* Add rows for the git folder of the workspace. A list that is full has no sentence. */
static bool checkpoint_look_git(struct checkpoint *checkpoint, int git, struct err *err)
{
	struct undo_state state;
	struct stat st;
	size_t rows = 0;

	if (fstat(git, &st) < 0)
		return true;
	undo_state_of(&st, &state);
	return (undo_list_add(&checkpoint->now, STR(".git"), &state) &&
		look_below(checkpoint, git, ".git", 0, &rows) &&
		look_objects(checkpoint, git)) ||
	       (checkpoint->now.count < UNDO_ROWS_MAX &&
		err_set(err, E2BIG,
			"the repository has over %d objects or refs in no pack; git gc packs "
			"them",
			OBJECTS_MAX));
}

/* Rows for all files of the workspace as they are now. */

/*
 * The most folders with a repository of their own that one thread reports. The session
 * takes fewer.
 */
enum { NESTED_MAX = 1024, KEY_MAX = 8 * PATH_MAX };

/* The findings of one thread of the walk. */
struct finder {
	struct undo_list rows;
	struct value *nested;
	bool full;
	bool linked; /* files of several names were found */
};

struct looking {
	struct checkpoint *checkpoint;
	struct str prefix;  /* of the folder that is walked: "" or "sub/dir" */
	bool all_ignored;   /* what that folder holds is ignored */
	bool second_pass;   /* only ignored folders are looked at */
	atomic_size_t seen; /* rows of all threads, about */
	struct finder finders[WALK_THREADS_MAX];
};

static void looking_init(struct looking *looking, struct checkpoint *checkpoint)
{
	*looking = (struct looking){.checkpoint = checkpoint};
	for (size_t i = 0; i < WALK_THREADS_MAX; i++) {
		undo_list_init(&looking->finders[i].rows);
		looking->finders[i].nested = value_new_array();
	}
}

/* PATH of a walk, relative to the workspace, in WHOLE. Empty: it is too long. */
static struct str whole_path(const struct looking *looking, struct str path,
			     char whole[PATH_MAX])
{
	int size;

	if (looking->prefix.size == 0)
		return path;
	size = snprintf(whole, PATH_MAX, "%s%s%s", looking->prefix.data,
			path.size > 0 ? "/" : "", path.data);
	return (struct str){whole, size < PATH_MAX ? (size_t)size : 0};
}

/* Watch a folder before it is listed. */
static void enter(void *owner, int folder_fd, struct str path, bool ignored)
{
	const struct looking *looking = owner;
	char whole[PATH_MAX];
	const struct str named = whole_path(looking, path, whole);

	ignored = ignored || looking->all_ignored;
	if (looking->checkpoint->watcher == NULL || (looking->second_pass && !ignored))
		return;
	(void)watcher_add(looking->checkpoint->watcher, folder_fd, named,
			  ignored ? WATCHED_IGNORED : WATCHED_ROWS);
}

/*
 * Note a repository. Those in the folders at the top are left out, because each audit
 * looks there anyway.
 */
static void add_nested(struct finder *finder, struct str path)
{
	if (str_find(path, STR("/"), 0) == (size_t)-1 ||
	    value_count(finder->nested) >= NESTED_MAX)
		return;
	auto_free char *copy = memory_copy_str(path);
	auto_free char *key = path_key(copy);
	value_append(finder->nested, value_new_text(key));
}

static void note_nested(struct finder *finder, const struct walk_entry *entry,
			struct str path)
{
	struct stat st;

	/* A folder that may be listed but not entered counts too. */
	if (path.size > 0 && entry->folder_fd >= 0 &&
	    (fstatat(entry->folder_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	     errno == EACCES))
		add_nested(finder, path);
}

#define HEAD "HEAD"

/*
 * A folder with a HEAD may be a bare repository. git_scan decides whether git takes it
 * for one.
 */
static void note_bare(struct finder *finder, const struct walk_entry *entry, struct str path)
{
	if (strcmp(entry->name, HEAD) == 0 && path.size > sizeof(HEAD))
		add_nested(finder, str_part(path, 0, path.size - sizeof(HEAD)));
}

/* Is PATH a temporary file of ours, which gets its final name soon? */
static bool is_temporary(const char *name, struct str path)
{
	return strncmp(name, ".glovebox-", 10) == 0 && str_ends(path, STR(".tmp"));
}

/*
 * Watch the file NAME in FOLDER itself: it has other names, by which it may be written.
 * ST becomes its state from then on.
 */
static void watch_file(const struct checkpoint *checkpoint, int folder, const char *name,
		       struct str path, struct stat *st)
{
	auto_close int fd = checkpoint->watcher != NULL
				    ? openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC)
				    : -1;

	if (fd < 0)
		return;
	(void)watcher_add(checkpoint->watcher, fd, path, WATCHED_FILE);
	(void)!fstat(fd, st);
}

/* A thread has found more rows. The first one, whose call it is, tells how many all have. */
static void count_seen(struct looking *looking, const struct walker *walker)
{
	const size_t before =
		atomic_fetch_add_explicit(&looking->seen, CHECKPOINT_COUNTED_BY,
					  memory_order_relaxed);

	if (walker_number(walker) == 0)
		checkpoint_tell_progress(looking->checkpoint, before + CHECKPOINT_COUNTED_BY,
					 looking->checkpoint->before.rows->count);
}

static void visit(void *owner, struct walker *walker, const struct walk_entry *entry)
{
	struct looking *looking = owner;
	struct finder *finder = &looking->finders[walker_number(walker)];
	char whole[PATH_MAX];
	const struct str path = whole_path(looking, entry->path, whole);
	struct undo_state state;
	struct stat st;
	bool is_folder = entry->kind == WALK_FOLDER;

	if (is_folder)
		note_nested(finder, entry, path);
	else
		note_bare(finder, entry, path);
	if (entry->kind == WALK_OTHER || path.size == 0 ||
	    (is_folder ? entry->folder_fd < 0 || fstat(entry->folder_fd, &st) < 0
		       : fstatat(entry->folder_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) <
				 0))
		return;
	if (entry->kind == WALK_FILE && st.st_nlink > 1) {
		finder->linked = true;
		watch_file(looking->checkpoint, entry->folder_fd, entry->name, path, &st);
	}
	undo_state_of(&st, &state);
	if (state.kind == UNDO_ABSENT || !record_path_is_sound(path) ||
	    is_temporary(entry->name, path))
		return;
	finder->full = finder->full || !undo_list_add(&finder->rows, path, &state);
	if (finder->rows.count % CHECKPOINT_COUNTED_BY == 0)
		count_seen(looking, walker);
}

/* The row of a path that rules ignore. */
static const struct undo_state ignored_row = {.kind = UNDO_IGNORED};

/*
 * An ignored file is not kept, only its name when it is not in an ignored folder. A
 * repository among the ignored ones is reported nevertheless.
 */
static void visit_ignored(void *owner, struct walker *walker, const struct walk_entry *entry)
{
	struct looking *looking = owner;
	struct finder *finder = &looking->finders[walker_number(walker)];
	char whole[PATH_MAX];
	const struct str path = whole_path(looking, entry->path, whole);
	struct stat st;

	if (entry->kind == WALK_FOLDER)
		note_nested(finder, entry, path);
	else
		note_bare(finder, entry, path);
	if (entry->named && path.size > 0 && record_path_is_sound(path))
		finder->full =
			finder->full || !undo_list_add(&finder->rows, path, &ignored_row);
	/* A file that is kept may have been written under its name in a new folder here. */
	if (looking->prefix.size > 0 && entry->kind == WALK_FILE && !finder->linked)
		finder->linked = fstatat(entry->folder_fd, entry->name, &st,
					 AT_SYMLINK_NOFOLLOW) == 0 &&
				 st.st_nlink > 1;
}

/* Walk START, which is the workspace or a folder in it, once. */
static bool walk_once(struct looking *looking, const struct walk_start *start,
		      uint64_t *left_out, struct err *err)
{
	struct checkpoint *checkpoint = looking->checkpoint;
	const bool ignored = looking->second_pass || looking->all_ignored;
	const struct walk_options options = {
		.call = checkpoint->call,
		.with_folders = true,
		.ignored_only = looking->second_pass,
		.opens = true,
		.enter = enter,
		.visit = ignored ? visit_ignored : visit,
		.owner = looking,
	};
	struct walk_summary summary;

	walk_summary_init(&summary);
	walk_run(start, &options, &summary);
	bool fine =
		summary.end == WALK_COMPLETE ||
		err_set(err, summary.end == WALK_FULL ? E2BIG : ETIMEDOUT, "%s",
			summary.end == WALK_FULL ? "the workspace has too many files"
						 : "there was no time to look at it all");
	checkpoint->unreadable += summary.unreadable;
	*left_out = summary.ignored;
	walk_summary_fini(&summary);
	return fine;
}

/* Walk START, and then what is ignored in it. */
static bool walk_whole(struct looking *looking, const struct walk_start *start,
		       struct err *err)
{
	uint64_t ignored, more;
	bool fine = walk_once(looking, start, &ignored, err);

	looking->second_pass = true;
	fine = fine && (ignored == 0 || looking->all_ignored ||
			walk_once(looking, start, &more, err));
	looking->second_pass = false;
	return fine;
}

/* Report a repository, with its absolute path as key, as git_scan does. */
static void nested_tell(struct checkpoint *checkpoint, const char *key)
{
	auto_free char *workspace = path_key(files_workspace(checkpoint->call->files));
	struct buf whole;

	buf_init(&whole, KEY_MAX);
	if (buf_addf(&whole, "%s/%s", workspace, key))
		value_append(checkpoint->nested, value_new_str(buf_str(&whole)));
	buf_fini(&whole);
}

static bool take_found(struct looking *looking, struct err *err)
{
	struct checkpoint *checkpoint = looking->checkpoint;
	bool full = false;

	for (size_t i = 0; i < WALK_THREADS_MAX; i++) {
		struct finder *finder = &looking->finders[i];

		full = full || finder->full;
		/* The rows of the first thread need no copy. */
		if (checkpoint->now.count == 0) {
			undo_list_fini(&checkpoint->now);
			checkpoint->now = finder->rows;
			undo_list_init(&finder->rows);
		}
		for (size_t j = 0; j < finder->rows.count && !full; j++)
			full = !undo_list_add(&checkpoint->now, finder->rows.rows[j].path,
					      &finder->rows.rows[j].state);
		for (size_t j = 0; j < value_count(finder->nested); j++)
			nested_tell(checkpoint, value_text(value_item(finder->nested, j)));
		undo_list_fini(&finder->rows);
		value_free(finder->nested);
	}
	return !full || is_too_many(err);
}

/* Add the row of the tracked file PATH if it is there, and watch its folder. */
static bool add_tracked(struct checkpoint *checkpoint, struct str path)
{
	const char *slash = strrchr(path.data, '/');
	auto_close int fd = fd_open_beneath(checkpoint->start.fd, path.data, O_PATH);
	struct undo_state state;
	struct stat st;

	if (fd < 0 || !record_path_is_sound(path))
		return true;
	if (checkpoint->watcher != NULL && slash != NULL) {
		auto_free char *folder =
			memory_copy_str(str_part(path, 0, (size_t)(slash - path.data)));
		auto_close int above = fd_open_beneath(checkpoint->start.fd, folder,
						       O_RDONLY | O_DIRECTORY);

		if (above >= 0)
			(void)watcher_add(checkpoint->watcher, above, str_of(folder),
					  WATCHED_ROWS);
	}
	if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode))
		return true;
	undo_state_of(&st, &state);
	return state.kind == UNDO_ABSENT || undo_list_add(&checkpoint->now, path, &state);
}

/*
 * A tracked file belongs to git even when an ignore rule names it. Both lists are sorted;
 * new rows are added at the end.
 */
static bool add_ignored_tracked(struct checkpoint *checkpoint)
{
	const struct tracked_files *tracked = &checkpoint->tracked;
	const struct undo_list *now = &checkpoint->now;
	const size_t found = now->count;
	size_t at = 0;

	for (size_t i = 0; i < tracked->count; i++) {
		const struct str path = tracked->items[i].path;

		while (at < found && strcmp(now->rows[at].path.data, path.data) < 0)
			at++;
		if (at < found && str_equal(now->rows[at].path, path) &&
		    now->rows[at].state.kind != UNDO_IGNORED)
			continue;
		if (!add_tracked(checkpoint, path))
			return false;
	}
	checkpoint->hides = now->count > found;
	return true;
}

/*
 * Open the git folder of the workspace: `.git`, or the target of a pointer there. -1:
 * none.
 */
static int open_git(const struct checkpoint *checkpoint, bool *is_own)
{
	int workspace = checkpoint->start.fd;
	int fd = fd_open_beneath(workspace, ".git", O_RDONLY | O_DIRECTORY);
	struct buf text;
	struct str path;

	*is_own = fd >= 0;
	if (fd >= 0 || errno != ENOTDIR)
		return fd;
	auto_close int pointer = fd_open_beneath(workspace, ".git", O_RDONLY);
	buf_init(&text, GIT_POINTER_MAX);
	if (pointer >= 0 && fd_read_all(pointer, &text, ".git", NULL) &&
	    readers_text_pointer(buf_str(&text), &path)) {
		auto_free char *name = memory_copy_str(path);
		/* It is only read, and the view decides what can be reached. */
		fd = openat(workspace, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	buf_fini(&text);
	return fd;
}

static bool look_pointer(struct checkpoint *checkpoint)
{
	struct undo_state state;
	struct stat st;

	if (fstatat(checkpoint->start.fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    S_ISDIR(st.st_mode))
		return true;
	undo_state_of(&st, &state);
	return state.kind == UNDO_ABSENT ||
	       undo_list_add(&checkpoint->now, STR(".git"), &state);
}

/* Fill `now`, sorted, from the workspace, `tracked` and `nested`. */
static bool look_at_all(struct checkpoint *checkpoint, struct err *err)
{
	struct looking looking;
	bool is_own, fine;

	looking_init(&looking, checkpoint);
	fine = walk_whole(&looking, &checkpoint->start, err);
	fine = take_found(&looking, err) && fine;
	if (!fine)
		return false;
	undo_list_sort(&checkpoint->now);
	auto_close int git = open_git(checkpoint, &is_own);
	if (git >= 0 && tracked_read(&checkpoint->tracked, git))
		fine = add_ignored_tracked(checkpoint);
	if (git >= 0 && is_own)
		fine = fine && checkpoint_look_git(checkpoint, git, err);
	else if (git >= 0)
		watch_git(checkpoint, git, UNDO_GIT);
	fine = fine && look_pointer(checkpoint);
	undo_list_sort(&checkpoint->now);
	return fine || tell_full(err);
}

/*
 * A look at the names that were told: `now` gets the rows that are there, `gone` the paths
 * that may have been in the list and are not there.
 */

struct telling {
	struct checkpoint *checkpoint;
	struct looking looking;
	struct undo_list gone;
	/* folders whose former content is gone; their present content was listed anew */
	struct undo_list trees;
	/* those of them that were moved away, perhaps with watches that still tell */
	struct undo_list moved;
	/* the folder of the last name: names come in order of their paths */
	struct walk_start folder;
	char folder_path[PATH_MAX];
	int folder_fd; /* -1: it is not there */
	bool has_folder, has_start;
	/* files of several names, of which not all need have been told */
	uint64_t *linked;
	size_t linked_count;
	bool any_linked;
	/* a name was made, written and moved away, and one may have gone unseen */
	bool carried, dropped;
	bool git;   /* something in the git folder was told */
	bool whole; /* the whole workspace must be looked at instead */
	struct err *err;
};

/* Is PATH one of the trees, or in one? They come in the order in which names are told. */
static bool is_in_trees(const struct telling *telling, struct str path)
{
	for (size_t end = 1; end <= path.size; end++) {
		const struct str above = str_part(path, 0, end);

		if ((end == path.size || path.data[end] == '/') &&
		    undo_list_find(&telling->trees, above) != NULL)
			return true;
	}
	return false;
}

static bool add_gone(void *context, const struct undo_row *row)
{
	struct telling *telling = context;

	return undo_list_add(&telling->gone, row->path, &undo_absent);
}

/* The rows of PATH and of all below it are gone. */
static bool tree_gone(struct telling *telling, struct str path)
{
	struct checkpoint *checkpoint = telling->checkpoint;
	char below[PATH_MAX + 1];
	const int size = snprintf(below, sizeof(below), "%s/", path.data);

	return undo_list_add(&telling->trees, path, &undo_absent) &&
	       undo_list_add(&telling->gone, path, &undo_absent) &&
	       rows_each_before(checkpoint, (struct str){below, (size_t)size}, add_gone,
				telling);
}

static void folder_close(struct telling *telling)
{
	fd_close(&telling->folder_fd);
	if (telling->has_start)
		walk_start_fini(&telling->folder);
	telling->has_folder = telling->has_start = false;
}

/* Open the folder of PATH, without following a link. */
static void folder_open(struct telling *telling, struct str path)
{
	const char *slash = memrchr(path.data, '/', path.size);
	const struct str folder =
		str_part(path, 0, slash != NULL ? (size_t)(slash - path.data) : 0);

	if (telling->has_folder && str_is(folder, telling->folder_path))
		return;
	folder_close(telling);
	(void)snprintf(telling->folder_path, sizeof(telling->folder_path), "%.*s",
		       (int)folder.size, folder.data);
	telling->folder_fd = fd_open_beneath(telling->checkpoint->start.fd,
					     folder.size > 0 ? telling->folder_path : ".",
					     O_PATH | O_DIRECTORY);
	telling->has_folder = true;
}

/* Do rules leave out NAME in the folder that is open? */
static bool is_ignored(struct telling *telling, const char *name, bool is_folder)
{
	struct err err;

	if (!telling->has_start)
		telling->has_start =
			walk_start_open(&telling->folder, telling->checkpoint->call,
					telling->folder_path[0] != '\0' ? telling->folder_path
									: ".",
					&err);
	if (!telling->has_start) {
		walk_start_fini(&telling->folder);
		return true; /* it has just gone, and that is told */
	}
	return walk_start_ignores(&telling->folder, name, is_folder);
}

/* Rules ignore PATH in the open folder: it gets a row, unless that folder has one. */
static bool add_ignored(struct telling *telling, struct str path)
{
	struct checkpoint *checkpoint = telling->checkpoint;

	return rows_was_ignored(checkpoint, str_of(telling->folder_path)) ||
	       !record_path_is_sound(path) ||
	       undo_list_add(&checkpoint->now, path, &ignored_row);
}

static void add_linked(struct telling *telling, uint64_t inode)
{
	if (inode == 0)
		telling->any_linked = true;
	telling->linked = memory_more(telling->linked, telling->linked_count,
				      sizeof(*telling->linked));
	telling->linked[telling->linked_count++] = inode;
}

/* List the folder PATH anew, with all that it holds. */
static bool look_at_tree(struct telling *telling, struct str path)
{
	struct checkpoint *checkpoint = telling->checkpoint;
	struct looking *looking = &telling->looking;
	struct walk_start start;
	struct err err = {0};

	looking->all_ignored = false;
	if (!walk_start_open(&start, checkpoint->call, path.data, &err)) {
		walk_start_fini(&start);
		return true; /* it has just gone, and that is told */
	}
	looking->prefix = path;
	looking->all_ignored = start.ignored;
	const bool fine = walk_whole(looking, &start, telling->err);
	walk_start_fini(&start);
	return fine;
}

/* Add the row of the tracked file PATH as add_tracked does, and note whether rules ignore it. */
static bool add_tracked_told(struct telling *telling, struct str path)
{
	struct checkpoint *checkpoint = telling->checkpoint;
	const char *slash = strrchr(path.data, '/');
	const size_t count = checkpoint->now.count;

	if (!add_tracked(checkpoint, path))
		return false;
	if (checkpoint->now.count == count || checkpoint->hides)
		return true;
	folder_open(telling, path);
	checkpoint->hides =
		is_ignored(telling, slash != NULL ? slash + 1 : path.data, false) ||
		telling->folder.ignored;
	return true;
}

/* Tracked files that rules ignore have rows as well, also in folders listed anew. */
static bool add_tracked_below(struct telling *telling, struct str path)
{
	const struct tracked_files *tracked = &telling->checkpoint->tracked;
	size_t low = 0, high = tracked->count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (strcmp(tracked->items[middle].path.data, path.data) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < tracked->count && str_starts(tracked->items[low].path, path); low++) {
		const struct str file = tracked->items[low].path;

		if (file.size > path.size && file.data[path.size] == '/' &&
		    !add_tracked_told(telling, file))
			return false;
	}
	return true;
}

/*
 * The folder NAME of the open folder, whose path is PATH. One that is still the watched
 * one has told of its changes; any other is listed anew.
 */
static bool told_folder(struct telling *telling, const struct told *told,
			const char *name, const struct stat *st)
{
	struct checkpoint *checkpoint = telling->checkpoint;
	const struct undo_state *was = rows_state_before(checkpoint, told->path);
	const bool ignored = was == NULL && is_ignored(telling, name, true);
	auto_close int fd =
		fd_open_beneath(telling->folder_fd, name, O_RDONLY | O_DIRECTORY);
	const mode_t enters = S_IRUSR | S_IXUSR;
	const bool is_open = fd >= 0 && (st->st_mode & enters) == enters;
	struct undo_state state;

	undo_state_of(st, &state);
	if (is_open && (was != NULL ? was->kind == UNDO_FOLDER : ignored) &&
	    (told->how & TOLD_UNWATCHED) == 0 &&
	    watcher_add(checkpoint->watcher, fd, told->path,
			ignored ? WATCHED_IGNORED : WATCHED_ROWS))
		return was == NULL || undo_list_add(&checkpoint->now, told->path, &state);
	if (!is_open) {
		auto_close int closed =
			fd_open_beneath(telling->folder_fd, name, O_PATH | O_DIRECTORY);

		if (closed >= 0)
			walk_mend_folder(closed);
	}
	telling->dropped = true;
	/* Its watches may be those of a folder that was moved away. */
	if (was != NULL)
		watcher_drop(checkpoint->watcher, told->path);
	return tree_gone(telling, told->path) && look_at_tree(telling, told->path) &&
	       (!telling->looking.all_ignored || add_ignored(telling, told->path)) &&
	       add_tracked_below(telling, told->path);
}

static bool told_file(struct telling *telling, const struct told *told, const char *name,
		      struct stat *st)
{
	struct checkpoint *checkpoint = telling->checkpoint;
	const struct undo_state *was = rows_state_before(checkpoint, told->path);
	struct undo_state state;

	undo_state_of(st, &state);
	if (was != NULL && was->kind == UNDO_FOLDER && !tree_gone(telling, told->path))
		return false;
	if (state.kind == UNDO_ABSENT)
		return tree_gone(telling, told->path);
	if (st->st_nlink > 1 && state.kind == UNDO_FILE) {
		add_linked(telling, state.inode);
		watch_file(checkpoint, telling->folder_fd, name, told->path, st);
		undo_state_of(st, &state);
	}
	if (was == NULL && is_ignored(telling, name, false)) {
		/* Without its folder nobody knows whether it is. */
		if (tracked_find(&checkpoint->tracked, told->path) == NULL)
			return !telling->has_start || add_ignored(telling, told->path);
		checkpoint->hides = true;
	}
	return is_temporary(name, told->path) || !record_path_is_sound(told->path) ||
	       undo_list_add(&checkpoint->now, told->path, &state);
}

/* Is this the last look of a session, so that no other one can make up what it misses? */
static bool is_last(const struct checkpoint *checkpoint)
{
	return checkpoint->is_step && (checkpoint->order.wishes & UNDO_LOOK_ONCE) != 0;
}

/*
 * A file that was made here, or was moved to here, may have gone since. It may have been
 * another name of a file that was written by that name, or a folder with such a name: a
 * look at the whole workspace is due. All that was here before, was made and came is there
 * now, was moved away or is gone. A file that was moved away came somewhere else, and is
 * looked for there. The last look takes no chance: nobody tells of the names in a folder
 * that came, nor of writes in an ignored one. The git folder is a mount of its own, so that
 * no file has another name there.
 */
static void note_passed(struct telling *telling, const struct told *told, bool is_there)
{
	struct checkpoint *checkpoint = telling->checkpoint;
	const bool was = rows_before(checkpoint, told->path) != NULL;
	const unsigned written = told->how & (TOLD_WRITTEN | TOLD_FOLDER);
	const bool in_ignored = (told->how & TOLD_IN_IGNORED) != 0;
	const unsigned all = was + told->made + told->came;
	const unsigned found = told->left + is_there;

	if (told->made + told->came == 0)
		return;
	telling->carried = telling->carried || (!in_ignored && written && told->left > 0);
	if (is_last(checkpoint) && (told->how & TOLD_FOLDER) != 0)
		checkpoint->report.findings |= UNDO_FOUND_OWES;
	/* Without a move, one that is gone is the one that was here before. */
	if (all <= found || (told->left == 0 && all - found <= was))
		return;
	/* Nobody tells of writes in an ignored folder, where programs make many names. */
	if (in_ignored)
		telling->dropped = telling->dropped || told->came > 0;
	if (is_last(checkpoint) || (!in_ignored && (written || told->came > 0)))
		checkpoint->report.findings |= UNDO_FOUND_OWES;
}

/* A name that is gone may have been a second one of a file that was written by it. */
static void note_partners(struct telling *telling, const struct told *told)
{
	const struct undo_state *was = rows_state_before(telling->checkpoint, told->path);

	if (was != NULL && was->kind == UNDO_FILE && (told->how & TOLD_WRITTEN) != 0)
		add_linked(telling, was->inode);
}

static bool told_gone(struct telling *telling, const struct told *told)
{
	note_partners(telling, told);
	if ((told->how & TOLD_MOVED) != 0)
		(void)undo_list_add(&telling->moved, told->path, &undo_absent);
	return tree_gone(telling, told->path);
}

/* The folder of a name that came or went has changed as well. */
static bool told_above(struct telling *telling, const struct told *told)
{
	const struct str path = str_of(telling->folder_path);
	struct undo_state state;
	struct stat st;

	if ((told->how & (TOLD_MADE | TOLD_GONE | TOLD_MOVED)) == 0 || path.size == 0 ||
	    telling->folder_fd < 0 || rows_state_before(telling->checkpoint, path) == NULL ||
	    fstat(telling->folder_fd, &st) < 0)
		return true;
	undo_state_of(&st, &state);
	return undo_list_add(&telling->checkpoint->now, path, &state);
}

/* Names that mean more than themselves. True: there is nothing else to do. */
static bool is_special(struct telling *telling, const struct told *told, const char *name)
{
	struct finder *finder = &telling->looking.finders[0];
	const struct str path = told->path;

	if ((told->how & TOLD_IN_GIT) != 0 || str_is(path, UNDO_GIT)) {
		telling->git = true;
		return true;
	}
	/* A folder that becomes a repository, or is none any more, has other rules. */
	if ((strcmp(name, ".gitignore") == 0 && (told->how & TOLD_IN_IGNORED) == 0) ||
	    strcmp(name, ".git") == 0)
		telling->whole = true;
	if (strcmp(name, HEAD) == 0 && path.size > sizeof(HEAD))
		add_nested(finder, str_part(path, 0, path.size - sizeof(HEAD)));
	return telling->whole;
}

static bool look_at_name(struct telling *telling, const struct told *told)
{
	const char *slash = strrchr(told->path.data, '/');
	const char *name = slash != NULL ? slash + 1 : told->path.data;
	struct stat st;

	if (is_special(telling, told, name))
		return true;
	if (is_in_trees(telling, told->path)) {
		/* It was listed anew wherever it is, perhaps in a folder that was moved. */
		note_passed(telling, told, (told->how & TOLD_GONE) == 0);
		if ((told->how & TOLD_GONE) != 0)
			note_partners(telling, told);
		return true;
	}
	folder_open(telling, told->path);
	if (!told_above(telling, told))
		return false;
	const bool is_there =
		telling->folder_fd >= 0 &&
		fstatat(telling->folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	note_passed(telling, told, is_there);
	if (!is_there)
		return told_gone(telling, told);
	if (S_ISDIR(st.st_mode))
		return told_folder(telling, told, name, &st);
	return told_file(telling, told, name, &st);
}

/* Add ROW when the index does not name its content any more. */
static bool look_at_lost(void *context, const struct undo_row *row)
{
	struct checkpoint *checkpoint = context;

	return row->state.source != UNDO_IN_GIT ||
	       !rows_is_lost(checkpoint,
			     tracked_next(&checkpoint->tracked, row->path,
					  &checkpoint->tracked_at),
			     &row->state) ||
	       add_tracked(checkpoint, row->path);
}

static bool look_at_git(struct telling *telling)
{
	struct checkpoint *checkpoint = telling->checkpoint;
	struct undo_list *now = &checkpoint->now;
	struct undo_state index = checkpoint->tracked.index;
	bool is_own, fine = tree_gone(telling, STR(UNDO_GIT));

	auto_close int git = open_git(checkpoint, &is_own);
	auto_close int file = git >= 0 ? fd_open_beneath(git, "index", O_PATH) : -1;
	struct undo_state state;
	struct stat st;

	if (file >= 0 && fstat(file, &st) == 0)
		undo_state_of(&st, &state);
	else
		state = undo_absent;
	if (!rows_same_times(&index, &state)) {
		tracked_fini(&checkpoint->tracked);
		if (git >= 0 && tracked_read(&checkpoint->tracked, git))
			for (size_t i = 0; fine && i < checkpoint->tracked.count; i++) {
				const struct str path = checkpoint->tracked.items[i].path;

				fine = rows_state_before(checkpoint, path) != NULL ||
				       add_tracked_told(telling, path);
			}
		fine = fine &&
		       rows_each_before(checkpoint, STR(""), look_at_lost, checkpoint);
	}
	if (git >= 0 && is_own)
		fine = fine && checkpoint_look_git(checkpoint, git, telling->err);
	else if (git >= 0)
		watch_git(checkpoint, git, UNDO_GIT);
	fine = fine && look_pointer(checkpoint);
	undo_list_sort(now);
	checkpoint->has_git = undo_list_find(now, STR(UNDO_GIT)) != NULL;
	/* The contents that it held are lost, whichever files have them. */
	if (!checkpoint->has_git && rows_state_before(checkpoint, STR(UNDO_GIT)) != NULL)
		telling->whole = true;
	return fine;
}

static int compare_numbers(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* ROW may be another name of a file that was told. */
static bool look_at_partner(void *context, const struct undo_row *row)
{
	struct telling *telling = context;
	struct checkpoint *checkpoint = telling->checkpoint;
	struct undo_state state;
	struct stat st;

	if (row->state.kind != UNDO_FILE ||
	    (row->state.inode != 0 && !telling->any_linked &&
	     bsearch(&row->state.inode, telling->linked, telling->linked_count,
		     sizeof(*telling->linked), compare_numbers) == NULL))
		return true;
	auto_close int fd = fd_open_beneath(checkpoint->start.fd, row->path.data, O_PATH);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return true; /* it has gone, and that is told */
	if (st.st_nlink > 1) {
		(void)watcher_add(checkpoint->watcher, fd, row->path, WATCHED_FILE);
		(void)!fstat(fd, &st);
	}
	undo_state_of(&st, &state);
	return state.kind == UNDO_ABSENT ||
	       undo_list_add(&checkpoint->now, row->path, &state);
}

/* A write is told under one name of the file only. */
static bool look_at_partners(struct telling *telling)
{
	for (size_t i = 0; i < WALK_THREADS_MAX; i++)
		telling->any_linked =
			telling->any_linked || telling->looking.finders[i].linked;
	if (telling->linked_count == 0 && !telling->any_linked)
		return true;
	if (telling->linked_count > 0)
		qsort(telling->linked, telling->linked_count, sizeof(*telling->linked),
		      compare_numbers);
	return rows_each_before(telling->checkpoint, STR(""), look_at_partner, telling);
}

/*
 * An ignored file that was there before, and was removed, is lost: undo keeps none of
 * them.
 */
static void note_lost(struct telling *telling, const struct told *told)
{
	struct checkpoint *checkpoint = telling->checkpoint;
	const unsigned ways = TOLD_GONE | TOLD_MOVED | TOLD_FOLDER | TOLD_IN_GIT;
	const struct undo_state *was;
	struct stat st;

	if (!checkpoint->is_step || (told->how & ways) != TOLD_GONE ||
	    told->made + told->came > 0)
		return;
	was = rows_before(checkpoint, told->path);
	if ((was != NULL ? was->kind == UNDO_IGNORED : (told->how & TOLD_IN_IGNORED) != 0) &&
	    fstatat(checkpoint->start.fd, told->path.data, &st, AT_SYMLINK_NOFOLLOW) < 0)
		rows_lost(checkpoint, told->path);
}

static bool look_at_names(struct telling *telling, const struct told_names *told)
{
	struct checkpoint *checkpoint = telling->checkpoint;
	bool fine = true;

	for (size_t i = 0; fine && !telling->whole && i < told->count; i++) {
		if (i % ROWS_STOP_EVERY == ROWS_STOP_EVERY - 1 &&
		    call_stopped(checkpoint->call))
			return err_set(telling->err, ETIMEDOUT,
				       "there was no time to look at it all");
		note_lost(telling, &told->names[i]);
		fine = look_at_name(telling, &told->names[i]);
	}
	for (size_t i = 0; i < telling->moved.count; i++)
		watcher_drop(checkpoint->watcher, telling->moved.rows[i].path);
	if (fine && !telling->whole && telling->git)
		fine = look_at_git(telling);
	fine = fine && (telling->whole || look_at_partners(telling));
	if (telling->carried && telling->dropped)
		checkpoint->report.findings |= UNDO_FOUND_OWES;
	return fine || tell_full(telling->err);
}

/* Was a file of secrets told, or a folder that came and may hold one? */
static bool has_secrets(const struct told_names *told)
{
	for (size_t i = 0; i < told->count; i++) {
		const struct told *name = &told->names[i];
		const char *slash = strrchr(name->path.data, '/');

		if (secret_file_of(slash != NULL ? slash + 1 : name->path.data) !=
			    SECRET_FILE_NONE ||
		    ((name->how & TOLD_FOLDER) != 0 && name->came > 0))
			return true;
	}
	return false;
}

/*
 * Look at what the watcher was told, and keep it; the rows that differ are NEWS. False
 * with WHOLE: all must be looked at instead. False with ERR: it failed.
 */
static bool look_at_told(struct checkpoint *checkpoint, struct undo_list *news,
			 bool *whole, struct err *err)
{
	struct telling telling = {.checkpoint = checkpoint, .folder_fd = -1, .err = err};
	struct told_names told;
	bool fine = true;

	looking_init(&telling.looking, checkpoint);
	undo_list_init(&telling.gone);
	undo_list_init(&telling.trees);
	undo_list_init(&telling.moved);
	checkpoint->has_git = rows_state_before(checkpoint, STR(UNDO_GIT)) != NULL;
	if (watcher_take(checkpoint->watcher, &told)) {
		if (has_secrets(&told))
			checkpoint->report.findings |= UNDO_FOUND_SECRETS;
		fine = look_at_names(&telling, &told);
	} else {
		telling.whole = true;
		checkpoint->report.findings |= UNDO_FOUND_MISSED | UNDO_FOUND_SECRETS;
	}
	fine = take_found(&telling.looking, err) && fine;
	folder_close(&telling);
	undo_list_sort(&checkpoint->now);
	undo_list_sort(&telling.gone);
	const bool owes_now = is_last(checkpoint) &&
			      (checkpoint->report.findings & UNDO_FOUND_OWES) != 0;
	*whole = telling.whole || owes_now || watcher_useless(checkpoint->watcher) != NULL;
	fine = fine && !*whole &&
	       (rows_keep(checkpoint, &telling.gone, news, err) || tell_full(err));
	undo_list_fini(&telling.gone);
	told_names_fini(&told);
	undo_list_fini(&telling.trees);
	undo_list_fini(&telling.moved);
	free(telling.linked);
	return fine;
}

/* When the step made the repository, add these entries to the log too. */
static bool checkpoint_tell_made(struct checkpoint *checkpoint, struct err *err)
{
	const struct undo_row *row = undo_list_find(&checkpoint->now, STR(UNDO_GIT));
	bool fine = true;

	if (!checkpoint->is_step || row == NULL || row->state.kind != UNDO_FOLDER ||
	    rows_state_before(checkpoint, STR(UNDO_GIT)) != NULL ||
	    rows_is_passing(checkpoint, STR(UNDO_GIT)))
		return true;
	auto_close int git =
		fd_open_beneath(checkpoint->start.fd, UNDO_GIT, O_RDONLY | O_DIRECTORY);
	for (size_t i = 0; fine && git >= 0 && checkpoint_unlisted[i] != NULL; i++)
		fine = tracked_tell_made(checkpoint, git, checkpoint_unlisted[i], err);
	return fine;
}

static const struct undo_list no_rows;

/* The state that the worker of all looks of a session keeps between two of them. */

struct kept {
	uint64_t number; /* of the last look; the front counts those that it has taken */
	bool taken;      /* `rows` and `changed` are a list that the front has taken */
	struct watcher *watcher; /* NULL: changes cannot be watched */
	struct undo_list rows, changed;
	/* what the last look has found, until the front has taken it */
	struct undo_list news;
	bool news_are_all;
	size_t files, copies;
	uint64_t bytes;
	struct tracked_files tracked;
	bool counted; /* `listed` and `ignored` are those of `rows` with `changed` */
	uint64_t listed, ignored; /* rows that a search for names reads */
	bool wants_all;           /* the next look must be at the whole workspace */
	bool hides;               /* tracked files that rules ignore have rows */
	bool polled; /* the watcher has the descriptors that the front polls */
};

enum { CHANGED_MAX = 1024 }; /* rows in `changed`, before they go into `rows` */

/*
 * A search for names reads the paths alone when at most this number of them hold the part
 * that is wanted. Else it reads the rows, which takes 2 to 3 ms of 100,000.
 */
enum { WITH_PART_MAX = 512 };

/* Of this process, which serves one session: a call has no other place for it. */
static struct kept *kept;
static bool makes_looks; /* this is the worker that makes them */

static void kept_free(void)
{
	if (kept == NULL)
		return;
	watcher_free(kept->watcher);
	undo_list_fini(&kept->rows);
	undo_list_fini(&kept->changed);
	undo_list_fini(&kept->news);
	tracked_fini(&kept->tracked);
	free(kept);
	kept = NULL;
}

static void kept_make(void)
{
	if (kept != NULL)
		return;
	kept = memory_alloc(sizeof(*kept));
	undo_list_init(&kept->rows);
	undo_list_init(&kept->changed);
	undo_list_init(&kept->news);
	arena_init(&kept->tracked.paths);
}

static void kept_fold(void)
{
	if (kept->changed.count == 0)
		return;
	undo_list_join(&kept->rows, &kept->changed, true);
	undo_list_fini(&kept->changed);
	undo_list_init(&kept->changed);
}

static void news_forget(void)
{
	undo_list_fini(&kept->news);
	undo_list_init(&kept->news);
	kept->news_are_all = false;
}

/* Is ROW one that a search for names reads? */
static bool row_is_listed(const struct undo_row *row)
{
	return row->state.kind != UNDO_ABSENT && !record_is_gits(row->path);
}

static void count_row(const struct undo_row *row, uint64_t one, uint64_t *listed,
		      uint64_t *ignored)
{
	if (row == NULL || !row_is_listed(row))
		return;
	*listed += one;
	*ignored += row->state.kind == UNDO_IGNORED ? one : 0;
}

/* Make the counts of `rows` with `changed` those with `news`, too. */
static void count_news(uint64_t *listed, uint64_t *ignored)
{
	for (size_t i = 0; i < kept->news.count; i++) {
		const struct undo_row *row = &kept->news.rows[i];
		const struct undo_row *old = undo_list_find(&kept->changed, row->path);

		if (old == NULL)
			old = undo_list_find(&kept->rows, row->path);
		count_row(old, UINT64_MAX, listed, ignored); /* one less */
		count_row(row, 1, listed, ignored);
	}
}

/*
 * The front has taken LOOKS looks. When that does not include the last one, its log has
 * another number now, and the next look begins with the list before it.
 */
static void kept_settle(uint64_t looks)
{
	if (kept == NULL)
		return;
	if (looks != kept->number + 1 && (looks != kept->number || !kept->taken)) {
		kept_free();
		return;
	}
	if (looks == kept->number) {
		kept->wants_all = true;
		news_forget();
		return;
	}
	if (kept->news_are_all) {
		undo_list_fini(&kept->rows);
		undo_list_fini(&kept->changed);
		undo_list_init(&kept->changed);
		kept->rows = kept->news;
		undo_list_init(&kept->news);
		kept->counted = false;
	} else {
		if (kept->counted)
			count_news(&kept->listed, &kept->ignored);
		undo_list_join(&kept->changed, &kept->news, false);
		if (kept->changed.count > CHANGED_MAX + kept->rows.count / 32)
			kept_fold();
	}
	news_forget();
	kept->taken = true;
}

/* Is ROW the newest of its path, with NEWER and NEWEST looked at after its own list? */
static bool row_holds(const struct undo_row *row, const struct undo_list *newer,
		      const struct undo_list *newest)
{
	return row_is_listed(row) &&
	       (newer->count == 0 || undo_list_find(newer, row->path) == NULL) &&
	       (newest->count == 0 || undo_list_find(newest, row->path) == NULL);
}

/* Lists of which each is newer than the one before. The last two are empty. */
enum { LISTS = 3, LISTS_AND_NONE = LISTS + 2 };

/*
 * Call EACH of WANTED with the rows in its folder; with NULL, only count them in WANTED,
 * as always.
 */
static void each_row(struct checkpoint_names_wanted *wanted, struct str prefix,
		     const struct undo_list *const lists[LISTS_AND_NONE], size_t from,
		     size_t to)
{
	for (size_t i = from; i < to; i++) {
		const struct undo_list *list = lists[i];

		for (size_t at = undo_list_at(list, prefix);
		     at < list->count && str_starts(list->rows[at].path, prefix); at++) {
			if (!row_holds(&list->rows[at], lists[i + 1], lists[i + 2]))
				continue;
			count_row(&list->rows[at], 1, &wanted->entries, &wanted->ignored);
			if (wanted->each != NULL)
				wanted->each(wanted->context, &list->rows[at]);
		}
	}
}

/*
 * The same with only the rows whose paths hold the part that is wanted. False, without a
 * call of EACH: they are many, or the rows cannot be counted without reading them.
 */
static bool each_row_with(struct checkpoint_names_wanted *wanted,
			  const struct undo_list *const lists[LISTS_AND_NONE])
{
	const struct undo_row *found[LISTS][WITH_PART_MAX];
	size_t counts[LISTS];

	for (size_t i = 0; i < LISTS; i++) {
		counts[i] = undo_list_with(lists[i], wanted->part, WITH_PART_MAX, found[i]);
		if (counts[i] > WITH_PART_MAX)
			return false;
	}
	if (!kept->counted) {
		struct checkpoint_names_wanted all = {.part = STR("")};

		/* Of `rows` and `changed` alone: what is newer than both is not settled. */
		const struct undo_list *settled[LISTS_AND_NONE] = {lists[0], lists[1],
								   &no_rows, &no_rows,
								   &no_rows};
		each_row(&all, STR(""), settled, 0, 2);
		kept->listed = all.entries;
		kept->ignored = all.ignored;
		kept->counted = true;
	}
	wanted->entries = kept->listed;
	wanted->ignored = kept->ignored;
	count_news(&wanted->entries, &wanted->ignored);
	for (size_t i = 0; i < LISTS; i++) {
		for (size_t at = 0; at < counts[i]; at++) {
			if (row_holds(found[i][at], lists[i + 1], lists[i + 2]))
				wanted->each(wanted->context, found[i][at]);
		}
	}
	return true;
}

bool checkpoint_is_made_here(void)
{
	return makes_looks;
}

enum checkpoint_names checkpoint_each_name(struct checkpoint_names_wanted *wanted)
{
	char text[PATH_MAX + 1] = "";
	const struct str under = wanted->under;
	const int size = under.size > 0 ? snprintf(text, sizeof(text), "%.*s/",
						   (int)under.size, under.data)
					: 0;
	const struct str prefix = {text, (size_t)size};

	if (!makes_looks)
		return CHECKPOINT_NO_LIST;
	if (kept == NULL || kept->watcher == NULL || kept->wants_all || kept->hides ||
	    prefix.size >= sizeof(text) || !watcher_is_quiet(kept->watcher))
		return CHECKPOINT_STALE;
	const struct undo_list *const lists[LISTS_AND_NONE] = {&kept->rows, &kept->changed,
							       &kept->news, &no_rows,
							       &no_rows};
	const bool searches =
		wanted->part.size > 0 && under.size == 0 && !kept->news_are_all;

	if (!searches || !each_row_with(wanted, lists))
		each_row(wanted, prefix, lists, kept->news_are_all ? 2 : 0, LISTS);
	return CHECKPOINT_LISTED;
}

/* FD_EVENTS and FD_PENDING are for the watcher, if they are given. */
enum { FD_OLD, FD_NEW, FD_LOG, FD_EVENTS, FD_PENDING };

/* Lists up to this number of rows are written with each look that finds a difference. */
enum { WRITTEN_MAX = 4096 };

static const struct row checkpoint_params[] = {
	{"log", ROW_ID, true, "Number of the log", .max = UINT32_MAX},
	{"began_ms", ROW_COUNT, false, "When the command began", .aliases = NULL},
	{"ended_ms", ROW_COUNT, false, "When it ended", .aliases = NULL},
	{"looks", ROW_COUNT, false, "Looks that the front has taken", .aliases = NULL},
	{"wishes", ROW_COUNT, false, "The sum of undo_look_wish", .aliases = NULL},
	{0},
};

static bool wishes(const struct checkpoint *checkpoint, enum undo_look_wish wish)
{
	return (checkpoint->order.wishes & wish) != 0;
}

static void find(struct checkpoint *checkpoint, enum undo_look_finding finding, bool is_so)
{
	if (is_so)
		checkpoint->report.findings |= finding;
}

static bool has_found(const struct checkpoint *checkpoint, enum undo_look_finding finding)
{
	return (checkpoint->report.findings & finding) != 0;
}

/*
 * Is the list kept for the next look? A session of one call has one look more, for which
 * watching is not worth its price in a small workspace. How large it is, the list of an earlier
 * session tells.
 */
static bool keeps(const struct checkpoint *checkpoint)
{
	return wishes(checkpoint, UNDO_LOOK_KEEP) ||
	       (wishes(checkpoint, UNDO_LOOK_ONCE) &&
		(kept != NULL || checkpoint->old.count > WRITTEN_MAX));
}

static bool list_write(const struct undo_list *list, int fd, struct err *err)
{
	struct buf text;

	buf_init(&text, UNDO_LIST_MAX);
	undo_list_print(list, &text);
	bool fine = !text.overflowed && fd_write_all(fd, text.data, text.size, err);
	if (text.overflowed)
		(void)err_set(err, E2BIG, "the list of the workspace is too long");
	buf_fini(&text);
	return fine;
}

/*
 * Write the list that is true after this look, when the front wants it or when that costs
 * little. *WRITTEN: it stands in FD_NEW. A long one waits until the session rests.
 */
static bool new_write(struct checkpoint *checkpoint, bool *written, struct err *err)
{
	const struct undo_list *list = &checkpoint->now;
	const bool all = kept == NULL || kept->news_are_all;
	const bool wanted = wishes(checkpoint, UNDO_LOOK_WRITE);
	const bool once = wishes(checkpoint, UNDO_LOOK_ONCE);
	struct undo_list whole;
	bool fine;

	*written = false;
	if (kept != NULL && all)
		list = &kept->news;
	if (!has_found(checkpoint, UNDO_FOUND_DIFFERS) && !wanted)
		return true;
	if (kept != NULL && !wanted && !once &&
	    (all ? list->count : kept->rows.count + kept->changed.count) > WRITTEN_MAX)
		return true;
	*written = true;
	if (all)
		return list_write(list, checkpoint->call->fds[FD_NEW], err);
	undo_list_init(&whole);
	undo_list_join(&whole, &kept->rows, true);
	undo_list_join(&whole, &kept->changed, true);
	undo_list_join(&whole, &kept->news, true);
	fine = list_write(&whole, checkpoint->call->fds[FD_NEW], err);
	undo_list_fini(&whole);
	return fine;
}

/* Rows of the list after this look; about as many where some of them are gone. */
static int64_t rows_count(const struct checkpoint *checkpoint)
{
	if (kept == NULL)
		return (int64_t)checkpoint->now.count;
	if (kept->news_are_all)
		return (int64_t)kept->news.count;
	return (int64_t)(kept->rows.count + kept->changed.count + kept->news.count);
}

static void tell(struct checkpoint *checkpoint, struct tool_result *result)
{
	struct undo_look_report *report = &checkpoint->report;
	const bool watched = kept != NULL && kept->watcher != NULL;

	find(checkpoint, UNDO_FOUND_WATCHED, watched);
	find(checkpoint, UNDO_FOUND_POLLED, watched && kept->polled);
	find(checkpoint, UNDO_FOUND_ALL, kept == NULL || kept->news_are_all);
	if (checkpoint->unwatched.text[0] != '\0')
		report->unwatched = checkpoint->unwatched.text;
	report->below = checkpoint->below;
	report->lost_name = checkpoint->lost_name;
	report->lost_below = checkpoint->lost_below;
	report->rows = rows_count(checkpoint);
	report->files = (int64_t)checkpoint->files;
	result->details = fields_print(undo_look_report_fields, report);
	value_set(result->details, "nested", value_ref(checkpoint->nested));
	value_set(result->details, "link", value_ref(checkpoint->links));
}

static void old_read(struct checkpoint *checkpoint, int fd)
{
	bool known = wishes(checkpoint, UNDO_LOOK_KNOWN);

	/*
	 * An old list that cannot be read counts as none: all files are looked at and
	 * copied again.
	 */
	if (!undo_list_read(fd, &checkpoint->old, NULL)) {
		undo_list_fini(&checkpoint->old);
		undo_list_init(&checkpoint->old);
		known = false;
	}
	/* Without an old list there is no change to report. */
	if (checkpoint->old.count == 0 && !known) {
		find(checkpoint, UNDO_FOUND_UNKNOWN, checkpoint->is_step);
		checkpoint->is_step = false;
	}
}

/* A look at the whole workspace. */
static bool whole_look(struct checkpoint *checkpoint, int64_t *look_us, struct err *err)
{
	struct call *call = checkpoint->call;
	const int64_t began_us = clock_now_us();

	if (kept != NULL) {
		kept_fold();
		watcher_free(kept->watcher);
		kept->watcher = NULL;
		checkpoint->before = (struct list_before){&kept->rows, &no_rows};
	} else {
		old_read(checkpoint, call->fds[FD_OLD]);
		/*
		 * The list of the last look was lost with its worker: what differs from
		 * an older one is not the command's.
		 */
		if (wishes(checkpoint, UNDO_LOOK_STALE)) {
			find(checkpoint, UNDO_FOUND_UNKNOWN, checkpoint->is_step);
			checkpoint->is_step = false;
		}
		checkpoint->before = (struct list_before){&checkpoint->old, &no_rows};
	}
	bool keeping = keeps(checkpoint);
	const bool watches = keeping && !is_last(checkpoint);
	/* In a layer the changes that others make below it are told to nobody. */
	if (watches && call->layer == NULL)
		checkpoint->watcher =
			watcher_new(checkpoint->start.fd, call->limits.watches,
				    (struct watcher_fds){call->fds[FD_EVENTS],
							 call->fds[FD_PENDING]},
				    &checkpoint->unwatched);
	else if (watches)
		(void)err_set(&checkpoint->unwatched, EOPNOTSUPP,
			      "a folder is thrown away in the end");
	bool fine = look_at_all(checkpoint, err);
	*look_us = clock_now_us() - began_us;
	fine = fine && rows_keep(checkpoint, NULL, NULL, err) &&
	       checkpoint_tell_made(checkpoint, err);
	if (checkpoint->watcher != NULL && watcher_useless(checkpoint->watcher) != NULL) {
		(void)err_set(&checkpoint->unwatched, ENOSPC, "%s",
			      watcher_useless(checkpoint->watcher));
		watcher_free(checkpoint->watcher);
		checkpoint->watcher = NULL;
	}
	if (wishes(checkpoint, UNDO_LOOK_ONCE)) {
		keeping = keeping && (checkpoint->watcher != NULL || kept != NULL);
		checkpoint->unwatched.text[0] = '\0';
	}
	if (!fine || !keeping) {
		watcher_free(checkpoint->watcher);
		checkpoint->watcher = NULL;
		return fine;
	}
	kept_make();
	kept->watcher = checkpoint->watcher;
	tracked_fini(&kept->tracked);
	tracked_move(&checkpoint->tracked, &kept->tracked);
	undo_list_fini(&kept->news);
	kept->news = checkpoint->now;
	undo_list_init(&checkpoint->now);
	kept->news_are_all = true;
	kept->wants_all = false;
	kept->hides = checkpoint->hides;
	kept->polled = call->fds[FD_EVENTS] >= 0 && call->fds[FD_PENDING] >= 0;
	return true;
}

/* A look at what was told since the last one. False with *WHOLE or ERR as look_at_told. */
static bool told_look(struct checkpoint *checkpoint, bool *whole, int64_t *look_us,
		      struct err *err)
{
	const int64_t began_us = clock_now_us();
	struct undo_list news;

	undo_list_init(&news);
	checkpoint->before = (struct list_before){&kept->rows, &kept->changed};
	checkpoint->watcher = kept->watcher;
	checkpoint->files = kept->files;
	checkpoint->copies = kept->copies;
	checkpoint->bytes = kept->bytes;
	checkpoint->tracked = kept->tracked;
	bool fine = look_at_told(checkpoint, &news, whole, err) &&
		    checkpoint_tell_made(checkpoint, err);
	*look_us = clock_now_us() - began_us;
	tracked_move(&checkpoint->tracked, &kept->tracked);
	if (fine) {
		undo_list_sort(&news);
		undo_list_fini(&kept->news);
		kept->news = news;
		kept->news_are_all = false;
		kept->hides = kept->hides || checkpoint->hides;
	} else {
		undo_list_fini(&news);
		kept->wants_all = true;
	}
	return fine;
}

static void checkpoint_init(struct checkpoint *checkpoint, struct call *call)
{
	*checkpoint = (struct checkpoint){
		.call = call,
		.began_ns = clock_wall_ns(),
		.told_ms = clock_now_ms(),
		.start = {.fd = -1},
		.nested = value_new_array(),
		.links = value_new_array(),
	};
	(void)fields_read(call->arguments, undo_look_order_fields, &checkpoint->order,
			  NULL, NULL);
	checkpoint->is_step = wishes(checkpoint, UNDO_LOOK_STEP);
	undo_list_init(&checkpoint->old);
	undo_list_init(&checkpoint->now);
	arena_init(&checkpoint->tracked.paths);
	undo_log_begin(&checkpoint->log, call->fds[FD_LOG], (uint32_t)checkpoint->order.log);
}

static void checkpoint_fini(struct checkpoint *checkpoint)
{
	walk_start_fini(&checkpoint->start);
	undo_list_fini(&checkpoint->old);
	undo_list_fini(&checkpoint->now);
	tracked_fini(&checkpoint->tracked);
	free(checkpoint->below);
	free(checkpoint->lost_name);
	free(checkpoint->lost_below);
	value_free(checkpoint->nested);
	value_free(checkpoint->links);
}

/* The look as the call wants it, or as it is possible. */
static bool look(struct checkpoint *checkpoint, int64_t *look_us, struct err *err)
{
	struct call *call = checkpoint->call;
	const struct undo_log log = checkpoint->log;
	bool whole = false;

	if (kept != NULL && kept->watcher != NULL && !kept->wants_all &&
	    !wishes(checkpoint, UNDO_LOOK_WHOLE)) {
		if (told_look(checkpoint, &whole, look_us, err))
			return true;
		if (!whole)
			return false;
		/* Nothing was written yet: that comes after all was found. */
		const bool missed = has_found(checkpoint, UNDO_FOUND_MISSED);

		checkpoint_fini(checkpoint);
		checkpoint_init(checkpoint, call);
		checkpoint->log = log;
		find(checkpoint, UNDO_FOUND_MISSED, missed);
		if (!walk_start_open(&checkpoint->start, call, ".", err))
			return false;
	}
	return whole_look(checkpoint, look_us, err);
}

static enum result_status checkpoint_execute(struct call *call, struct tool_result *result)
{
	struct checkpoint checkpoint;
	int64_t look_us = 0;
	bool written = false;
	struct err err = {0};

	checkpoint_init(&checkpoint, call);
	makes_looks = makes_looks || wishes(&checkpoint, UNDO_LOOK_KEEP);
	kept_settle((uint64_t)checkpoint.order.looks);
	const uint64_t begin = checkpoint.log.at;
	bool fine = walk_start_open(&checkpoint.start, call, ".", &err) &&
		    look(&checkpoint, &look_us, &err) &&
		    new_write(&checkpoint, &written, &err) &&
		    (!checkpoint.is_step || checkpoint.log.at == begin ||
		     undo_log_end(&checkpoint.log, &err));
	if (kept != NULL) {
		kept->number = (uint64_t)checkpoint.order.looks;
		kept->files = checkpoint.files;
		kept->copies = checkpoint.copies;
		kept->bytes = checkpoint.bytes;
		kept->wants_all = kept->wants_all || !fine;
	}
	if (fine) {
		find(&checkpoint, UNDO_FOUND_WRITTEN, written);
		checkpoint.report.us = look_us;
		tell(&checkpoint, result);
		(void)tool_done(result);
	} else if (call_stopped(call)) {
		(void)call_stop_result(call, result);
	} else {
		(void)tool_fail(result, "%s", err.text);
	}
	checkpoint_fini(&checkpoint);
	return result->status;
}

const struct tool checkpoint_tool = {
	.name = "checkpoint",
	.description = "List the workspace and keep what could not be had again.",
	.example = "{\"log\": 1}",
	.params = checkpoint_params,
	.effects = EFFECT_READS,
	.timeout_s = 120, /* copying 1 GiB from a slow disk */
	.internal = true,
	.plain = true,
	.resident = true,
	.execute = checkpoint_execute,
};
