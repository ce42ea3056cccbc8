/* checkpoint_look: what the workspace holds now, as rows. */
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "files/files.h"
#include "guard/readers.h"
#include "guard/scan.h"
#include "tools/checkpoint_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Folders with a repository of their own that a thread tells: more than the session takes. */
enum { NESTED_MAX = 1024, KEY_MAX = 8 * PATH_MAX };

/* The findings of one thread of the walk. */
struct finder {
	struct undo_list rows;
	struct value *nested;
	bool full;
};

struct looking {
	struct checkpoint *checkpoint;
	struct finder finders[WALK_THREADS_MAX];
};

/* Each audit looks into the folders at the top by itself. */
static void add_nested(struct finder *finder, struct str path)
{
	if (str_find(path, STR("/"), 0) == (size_t)-1 ||
	    value_count(finder->nested) >= NESTED_MAX)
		return;
	auto_free char *copy = memory_copy_str(path);
	auto_free char *key = path_key(copy);
	value_append(finder->nested, value_new_text(key));
}

static void note_nested(struct finder *finder, const struct walk_entry *entry)
{
	struct stat st;

	/* One that may be listed and not entered is looked at, too. */
	if (entry->path.size > 0 && entry->folder_fd >= 0 &&
	    (fstatat(entry->folder_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	     errno == EACCES))
		add_nested(finder, entry->path);
}

#define HEAD "HEAD"

/* A folder with a HEAD may be a repository itself: whether git takes it for one, git_scan says. */
static void note_bare(struct finder *finder, const struct walk_entry *entry)
{
	if (strcmp(entry->name, HEAD) == 0 && entry->path.size > sizeof(HEAD))
		add_nested(finder,
			   str_part(entry->path, 0, entry->path.size - sizeof(HEAD)));
}

static void visit(void *owner, struct walker *walker, const struct walk_entry *entry)
{
	struct looking *looking = owner;
	struct finder *finder = &looking->finders[walker_number(walker)];
	struct undo_state state;
	struct stat st;
	bool is_folder = entry->kind == WALK_FOLDER;

	if (is_folder)
		note_nested(finder, entry);
	else
		note_bare(finder, entry);
	if (entry->kind == WALK_OTHER || entry->path.size == 0 ||
	    (is_folder ? entry->folder_fd < 0 || fstat(entry->folder_fd, &st) < 0
		       : fstatat(entry->folder_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) <
				 0))
		return;
	undo_state_of(&st, &state);
	/* A temporary file of ours, on its way to its place. */
	if (state.kind == UNDO_ABSENT || !undo_path_is_sound(entry->path) ||
	    (strncmp(entry->name, ".glovebox-", 10) == 0 &&
	     str_ends(entry->path, STR(".tmp"))))
		return;
	finder->full = finder->full || !undo_list_add(&finder->rows, entry->path, &state);
}

/*
 * An ignored file is not kept; a repository among the ignored ones is reported
 * nevertheless.
 */
static void visit_ignored(void *owner, struct walker *walker, const struct walk_entry *entry)
{
	struct looking *looking = owner;
	struct finder *finder = &looking->finders[walker_number(walker)];

	if (entry->kind == WALK_FOLDER)
		note_nested(finder, entry);
	else
		note_bare(finder, entry);
}

static bool walk_whole(struct looking *looking, bool ignored, uint64_t *left_out,
		       struct err *err)
{
	struct checkpoint *checkpoint = looking->checkpoint;
	const struct walk_options options = {
		.call = checkpoint->call,
		.with_folders = true,
		.ignored_only = ignored,
		.opens = true,
		.visit = ignored ? visit_ignored : visit,
		.owner = looking,
	};
	struct walk_summary summary;

	walk_summary_init(&summary);
	walk_run(&checkpoint->start, &options, &summary);
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

/* Keys as git_scan has them: absolute. */
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
		for (size_t j = 0; j < finder->rows.count && !full; j++)
			full = !undo_list_add(&checkpoint->now, finder->rows.rows[j].path,
					      &finder->rows.rows[j].state);
		for (size_t j = 0; j < value_count(finder->nested); j++)
			nested_tell(checkpoint, value_text(value_item(finder->nested, j)));
		undo_list_fini(&finder->rows);
		value_free(finder->nested);
	}
	return !full ||
	       err_set(err, E2BIG, "the workspace has over %d files", UNDO_ROWS_MAX);
}

/*
 * A tracked file that an ignore rule names is git's all the same. Both lists are in order;
 * what is added lies behind.
 */
static bool add_ignored_tracked(struct checkpoint *checkpoint)
{
	const struct tracked_files *tracked = &checkpoint->tracked;
	struct undo_list *now = &checkpoint->now;
	const size_t found = now->count;
	size_t at = 0;

	for (size_t i = 0; i < tracked->count; i++) {
		const struct str path = tracked->items[i].path;
		struct undo_state state;
		struct stat st;

		while (at < found && strcmp(now->rows[at].path.data, path.data) < 0)
			at++;
		if (at < found && str_equal(now->rows[at].path, path))
			continue;
		auto_close int fd =
			fd_open_beneath(checkpoint->start.fd, path.data, O_PATH);
		if (fd < 0 || fstat(fd, &st) < 0 || S_ISDIR(st.st_mode))
			continue;
		undo_state_of(&st, &state);
		if (state.kind != UNDO_ABSENT && undo_path_is_sound(path) &&
		    !undo_list_add(now, path, &state))
			return false;
	}
	return true;
}

/* The git folder of the workspace: `.git`, or what a pointer there leads to. -1: none. */
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
	    git_text_pointer(buf_str(&text), &path)) {
		auto_free char *name = memory_copy_str(path);
		/* Read only; the view decides what may be reached. */
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

bool checkpoint_look(struct checkpoint *checkpoint, struct err *err)
{
	struct looking looking = {.checkpoint = checkpoint};
	uint64_t ignored, more;
	bool is_own, fine;

	for (size_t i = 0; i < WALK_THREADS_MAX; i++) {
		undo_list_init(&looking.finders[i].rows);
		looking.finders[i].nested = value_new_array();
	}
	fine = walk_whole(&looking, false, &ignored, err) &&
	       (ignored == 0 || walk_whole(&looking, true, &more, err));
	fine = take_found(&looking, err) && fine;
	if (!fine)
		return false;
	undo_list_sort(&checkpoint->now);
	auto_close int git = open_git(checkpoint, &is_own);
	if (git >= 0 && checkpoint_read_index(checkpoint, git))
		fine = add_ignored_tracked(checkpoint);
	if (git >= 0 && is_own)
		fine = fine && checkpoint_look_git(checkpoint, git);
	fine = fine && look_pointer(checkpoint);
	undo_list_sort(&checkpoint->now);
	return fine ||
	       err_set(err, E2BIG, "the workspace has over %d files", UNDO_ROWS_MAX);
}
