/*
 * walk: every file below a folder, found by several threads, no symbolic link followed. Ignore
 * files are honoured (tools/search/rules.h), .git is never entered. Descriptors in use: at most two
 * per thread. Memory is bounded: the folders still to be read are kept as names, under a
 * ceiling. What could not be read or was not reached is counted, never passed over.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;
struct files;
struct rules;
struct walker;

/*
 * What a repository and the settings of its user say about ignoring, as git in this cell
 * reads it: core.ignoreCase, core.excludesFile (or git/ignore among the user's settings)
 * and info/exclude, of a linked worktree in the repository it belongs to. The user is
 * the cell's: its home is the project's private one. Settings that others include are
 * not followed.
 */

/* Where the rules of a walk are. */
struct rules_place {
	struct files *files;
	const char *const *environment; /* of the cell, NULL-ended */
	struct buf root;                /* absolute: the root of all rules */
};

enum {
	/*
	 * More threads than this only wait for each other in the kernel's directory
	 * cache.
	 */
	WALK_THREADS_MAX = 8,
	/* Between what two threads write: a cache line they share is slow for both. */
	WALK_APART = 64,
};

/* Where a walk starts. */
struct walk_start {
	int fd;
	struct buf shown; /* the folder as the model may name it, "." for the workspace */
	struct buf rules_path; /* relative to the root of all rules, "" for that root */
	struct rules_place rules_place;
	struct rules *rules; /* those that hold around the folder */
	/* a rule names the folder itself: asked for, so no rule holds in it */
	bool ignored;
};

/*
 * Reach the folder PATH. The start is given back by walk_start_fini, also after a
 * failure.
 */
bool walk_start_open(struct walk_start *start, const struct call *call, const char *path,
		     struct err *err);
void walk_start_fini(struct walk_start *start);
/* Append the name of PATH (relative to the start) as the model may use it. */
void walk_start_name(const struct walk_start *start, struct str path, struct buf *out);
/*
 * Open the file PATH (relative to the start) for reading, no link followed. -1 with
 * errno.
 */
int walk_start_open_file(const struct walk_start *start, const char *path);

enum walk_kind { WALK_FILE = 1, WALK_LINK, WALK_FOLDER, WALK_OTHER };

struct walk_entry {
	enum walk_kind kind;
	/* the folder that holds it; of a folder: itself, -1 if unreadable */
	int folder_fd;
	uint64_t folder; /* a number for it, never used twice by one thread */
	const char *name;
	struct str path;                  /* relative to the start, ends in NUL */
	size_t depth;                     /* 1: in the start folder itself */
	uint64_t folders, files, ignored; /* of a folder: what it holds */
};

struct walk_options {
	struct call *call; /* asked whether to stop */
	size_t depth;      /* deepest entries visited, 0: no bound */
	bool with_folders; /* visit folders too, each once it is read and counted */
	bool ignored_only; /* visit what is ignored, and nothing else */
	bool opens; /* a folder that is closed to its owner is opened to him first */
	/* enter only folders on the way to this one, and below it; or NULL */
	const char *under;
	int64_t until_ms;     /* monotonic; 0: no bound but the call's own */
	uint64_t entries_max; /* 0: WALK_ENTRIES_MAX */
	unsigned threads;     /* at most; 0: one per core */
	void (*visit)(void *owner, struct walker *walker, const struct walk_entry *entry);
	void *owner; /* visit comes from several threads at once */
};

enum walk_end {
	WALK_COMPLETE,
	WALK_STOPPED,  /* by the call: its deadline or a cancel */
	WALK_LATE,     /* by until_ms */
	WALK_FULL,     /* by entries_max or the ceiling for folders still to be read */
	WALK_GIVEN_UP, /* by its visitor */
};

struct walk_summary {
	enum walk_end end;
	uint64_t entries;    /* looked at */
	uint64_t folders;    /* read */
	uint64_t ignored;    /* entries left out by rules; a folder counts once */
	uint64_t unreadable; /* folders that could not be opened */
	uint64_t too_long;   /* entries whose path no program could open */
	struct buf example; /* the path of one unreadable folder, relative to the start */
};

void walk_summary_init(struct walk_summary *summary);
void walk_summary_fini(struct walk_summary *summary);
void walk_run(const struct walk_start *start, const struct walk_options *options,
	      struct walk_summary *summary);

/* For visitors: the number of the thread, below WALK_THREADS_MAX, and whether to stop. */
unsigned walker_number(const struct walker *walker);
bool walker_stopped(struct walker *walker);
/* They end it, for all threads. */
void walker_give_up(struct walker *walker);
