/*
 * checkpoint: what checkpoint.c, rows.c, tracked.c and restore.c share. The search for
 * names asks it for the list that is kept (checkpoint_each_name); nobody else includes it.
 *
 * A look compares the workspace with the list made last. The worker that makes all looks
 * of a session (tool.h, `resident`) keeps that list, and watches the folders in it
 * (watcher.h): its next look is at the names that were told and at nothing else, so its
 * cost is that of the changes. It is at the whole workspace when there is no watcher yet,
 * when changes were missed, when rules of what is ignored have changed, and when the
 * front wants that. Both ways find the same, but for one case: a file that was written by
 * way of another name which was made and went again within one step. Then `owes` says
 * that a look at the whole workspace is due. It does not where nothing was told of that
 * name: in an ignored folder, and in a folder that the step itself made and left.
 *
 * git's index is read by our own reader and not by `git ls-files`: the worker stays
 * usable, and no program of the project's configuration runs. The front makes the
 * links to git's objects, because the kernel makes no links across mounts.
 */
#pragma once

#include "base/clock.h"
#include "base/hash.h"
#include "tool/call.h"
#include "tools/looks/watcher.h"
#include "tools/search/walk.h"
#include "undo/list.h"

#include <stdbool.h>
#include <stdint.h>

/* A file as the index records it. */
struct tracked {
	struct str path;
	uint32_t mode, mtime_s, mtime_ns, ctime_s, ctime_ns, inode, size;
	uint8_t object[UNDO_OBJECT];
	bool unsure;
};

#define OBJECTS_PATH ".git/objects/"

struct tracked_files {
	struct tracked *items; /* in order of path */
	size_t count;
	struct arena paths;
	uint8_t object_size;
	/* of the index: files that are younger are not trusted, as in git */
	struct undo_state index;
};

enum {
	CHECKPOINT_TELL_MS = 200,   /* between two words on the progress */
	CHECKPOINT_COUNTED_BY = 64, /* rows, before the clock is asked */
};

/* The list made last: a row in `changed` is newer than one in `rows`, and may be absent. */
struct list_before {
	const struct undo_list *rows, *changed;
};

struct checkpoint {
	struct call *call;
	struct walk_start start;
	struct list_before before;
	/* the rows of a list on the disk; the present rows, or those that were told */
	struct undo_list old, now;
	struct watcher *watcher; /* the folders that are looked at get a watch; NULL: none */
	struct tracked_files tracked;
	size_t tracked_at; /* for tracked_next */
	struct undo_log log;
	struct undo_look_order order;
	bool is_step; /* the differences are those of a command */
	bool has_git; /* the workspace is a repository */
	int64_t began_ns;
	int64_t told_ms; /* when its progress was told last */
	/* results */
	struct value *nested; /* keys of folders far below the workspace that are repositories */
	struct value *links; /* new objects, to be linked */
	size_t unreadable;
	/* what is found; without the members that are known only at the end (tell) */
	struct undo_look_report report;
	size_t files;  /* in the list: all but folders and ignored ones */
	size_t looked; /* rows whose state is not that of the list */
	size_t copies;
	uint64_t bytes;
	/* the folder of all changes, "" for the workspace; NULL: there are none yet */
	char *below;
	char *lost_name, *lost_below; /* of the ignored names that are gone */
	bool hides;                   /* tracked files that rules ignore have rows */
	struct err unwatched; /* why changes are not watched; empty: they are, or need not be */
};

enum checkpoint_names {
	CHECKPOINT_NO_LIST, /* this worker makes no looks */
	/*
	 * Something has changed since its last look, that look has failed, or tracked files
	 * that rules ignore cannot be told from the others.
	 */
	CHECKPOINT_STALE,
	CHECKPOINT_LISTED,
};

/* A question for names of the list that this worker keeps. */
struct checkpoint_names_wanted {
	struct str under; /* the folder in which they lie; empty: the workspace itself */
	struct str part;  /* a text that every wanted path holds; empty: none is known */
	/*
	 * Called with rows of what the workspace holds, in no particular order: with all in
	 * UNDER, also those that rules ignore, or with fewer, of which none that holds PART
	 * is missing. Git's own folder is left out.
	 */
	void (*each)(void *context, const struct undo_row *row);
	void *context;
	uint64_t entries, ignored; /* the answer: of all rows in UNDER, and of these */
};

/* Tell the front, now and then, that the look has DONE so many rows of about ALL. */
static inline void checkpoint_tell_progress(struct checkpoint *checkpoint, size_t done,
					    size_t all)
{
	const int64_t now_ms = clock_now_ms();

	if (now_ms < checkpoint->told_ms + CHECKPOINT_TELL_MS)
		return;
	checkpoint->told_ms = now_ms;
	call_progress(checkpoint->call, (double)done, done <= all ? (double)all : -1, NULL);
}
/* `each` is called only when the answer is CHECKPOINT_LISTED. */
enum checkpoint_names checkpoint_each_name(struct checkpoint_names_wanted *wanted);
/* Does this worker make looks? Then it does not walk: a look would have to wait for it. */
bool checkpoint_is_made_here(void);

/* The files of the repository whose git folder is GIT, an open one. */
bool tracked_read(struct tracked_files *files, int git);
/* NULL: git does not track PATH. */
const struct tracked *tracked_find(const struct tracked_files *files, struct str path);
/* The same for paths that come in order, at the cost of one comparison each. *AT: 0 first. */
const struct tracked *tracked_next(const struct tracked_files *files, struct str path,
				   size_t *at);
/* FILES is empty afterwards, and may be read again. */
static inline void tracked_fini(struct tracked_files *files)
{
	arena_fini(&files->paths);
	free(files->items);
	*files = (struct tracked_files){0};
	arena_init(&files->paths);
}

static inline void tracked_move(struct tracked_files *from, struct tracked_files *to)
{
	*to = *from;
	*from = (struct tracked_files){0};
	arena_init(&from->paths);
}

/*
 * A hash of the entries (path, type, object) in the index FILE, without the times by
 * which git recognises the files: every `git status` may renew these. False: the index
 * has more than that (a conflict, a submodule, another part), or cannot be read.
 */
bool tracked_index_says(int file, uint8_t digest[HASH_BYTES]);
/*
 * Is PATH one of git's objects? Then NAME is the part of PATH that is the object's name.
 */
bool tracked_is_object(struct str path, const char **name);
/*
 * The step has made the repository whose folder is GIT: put NAME in it, with all below,
 * into the log. No list has these rows.
 */
bool tracked_tell_made(struct checkpoint *checkpoint, int git, const char *name,
		       struct err *err);
