/*
 * walk: every file below a folder, found by several threads, no symbolic link followed.
 * Ignore files are honoured, .git is never entered. Descriptors in use: at most two per
 * thread. Memory is bounded: the folders still to be read are kept as names, under a
 * ceiling. Every folder that could not be read or was not reached is counted, never
 * skipped in silence.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call;
struct files;
struct rules;
struct walker;

/*
 * The settings of a repository and its user about ignoring, as git in this cell reads
 * them: core.ignoreCase, core.excludesFile (or git/ignore among the user's settings) and
 * info/exclude, which a linked worktree has in the repository it belongs to. The user is
 * the cell's: its home is the project's private one. Settings that others include are not
 * followed.
 */

/* Where the rules of a walk come from. */
struct rules_place {
	struct files *files;
	const char *const *environment; /* of the cell, NULL-ended */
	struct buf root;                /* absolute: the root of all rules */
};

enum {
	/* More threads would only wait for each other in the kernel's directory cache. */
	WALK_THREADS_MAX = 8,
	/*
	 * The distance of data that two threads write: sharing a cache line is slow for
	 * both.
	 */
	WALK_APART = 64,
};

/* Where a walk starts. */
struct walk_start {
	int fd;
	struct buf shown; /* the folder's name for the model, "." for the workspace */
	struct buf rules_path; /* relative to the root of all rules, "" for that root */
	struct rules_place rules_place;
	struct rules *rules;  /* those that hold around the folder */
	struct rules *inside; /* and those in it, once walk_start_ignores was asked */
	bool has_inside;
	/*
	 * a rule names the folder itself; the call asks for the folder, so no rule holds
	 * in it
	 */
	bool ignored;
};

/* Reach the folder PATH. Call walk_start_fini afterwards, also after a failure. */
bool walk_start_open(struct walk_start *start, const struct call *call, const char *path,
		     struct err *err);
void walk_start_fini(struct walk_start *start);
/* Append the name of PATH (relative to the start) in a form that the model can use. */
void walk_start_name(const struct walk_start *start, struct str path, struct buf *out);
/*
 * Would a walk from here leave out NAME in the folder itself? Reads the ignore file of
 * the folder when it is first asked.
 */
bool walk_start_ignores(struct walk_start *start, const char *name, bool is_folder);

enum walk_kind { WALK_FILE = 1, WALK_LINK, WALK_FOLDER, WALK_OTHER };

struct walk_entry {
	enum walk_kind kind;
	/*
	 * the folder that holds the entry; for a folder: the folder itself, -1 if
	 * unreadable
	 */
	int folder_fd;
	uint64_t folder; /* a number of this folder, which one thread never uses twice */
	const char *name;
	struct str path; /* relative to the start, ends in NUL */
	size_t depth;    /* 1: in the start folder itself */
	bool named; /* ignored by a rule that names the entry, not only a folder above it */
	uint64_t folders, files, ignored; /* of a folder: what it holds */
};

struct walk_options {
	struct call *call; /* asked whether to stop */
	size_t depth;      /* of the deepest entries that are visited; 0: no limit */
	bool with_folders; /* visit folders too, each after it was read and counted */
	bool ignored_only; /* visit only ignored entries */
	bool opens; /* a folder that its owner may not enter gets all permissions first */
	/* enter only folders that lead to this one, and those below it; or NULL */
	const char *under;
	int64_t until_ms;     /* monotonic; 0: only the call's own limit */
	uint64_t entries_max; /* 0: WALK_ENTRIES_MAX */
	unsigned threads;     /* at most; 0: one per core */
	/* called with each open folder before it is read, by several threads; or NULL */
	void (*enter)(void *owner, int folder_fd, struct str path, bool ignored);
	void (*visit)(void *owner, struct walker *walker, const struct walk_entry *entry);
	void *owner; /* for both, which several threads call at the same time */
};

enum walk_end {
	WALK_COMPLETE,
	WALK_STOPPED, /* by the call: its deadline or a cancel */
	WALK_LATE,    /* by until_ms */
	/* by entries_max, or by the limit for folders that wait to be read */
	WALK_FULL,
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

static inline void walk_summary_init(struct walk_summary *summary)
{
	*summary = (struct walk_summary){0};
	buf_init(&summary->example, PATH_MAX);
}

static inline void walk_summary_fini(struct walk_summary *summary)
{
	buf_fini(&summary->example);
}

void walk_run(const struct walk_start *start, const struct walk_options *options,
	      struct walk_summary *summary);

/*
 * Give the owner of the folder FOLDER (O_PATH is enough) all permissions on it, if some
 * are missing: what `opens` does.
 */
void walk_mend_folder(int folder);

/*
 * For visitors: the number of the thread, below WALK_THREADS_MAX, and whether it must
 * stop.
 */
unsigned walker_number(const struct walker *walker);
bool walker_stopped(struct walker *walker);
/* A visitor ends the walk, for all threads. */
void walker_give_up(struct walker *walker);
