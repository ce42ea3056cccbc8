/*
 * readers: finds the keys of a git configuration that execute a program or lead git
 * elsewhere (git-config(1), "Syntax"). A key is inert only when it is on the list in
 * readers.c; unknown keys and lines that are not understood are active. The bytes are
 * not trusted, and their size is bounded.
 *
 * A new inert key comes with a row in tests/unit/guard/git_config_test.c.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* A larger configuration is not read and counts as active. */
enum { GIT_CONFIG_MAX = 1 << 20 };

struct git_config {
	/* a line "section.sub.key=value" for each key that is not inert */
	struct buf active;
	bool sha256;       /* extensions.objectFormat */
	bool of_worktrees; /* extensions.worktreeConfig: there is a config.worktree too */
	/*
	 * core.ignoreCase and core.excludesFile, when they are set (the last value
	 * counts)
	 */
	bool ignore_case;
	bool has_excludes_file;
	struct buf excludes_file; /* as it is written in the file */
	/*
	 * Called for every key, which is in lower case like SECTION; or NULL. SUB is the part
	 * in quotes, or "". All is valid during the call.
	 */
	void (*each)(void *context, const char *section, const char *sub, const char *key,
		     struct str value);
	void *context;
};

void git_config_init(struct git_config *config);
void git_config_fini(struct git_config *config);

/*
 * Append to PATH, in normal form, the file that LINE (of `active`) includes in a
 * configuration of FOLDER; a condition counts as met. HOME replaces "~" in "~/"; or NULL.
 * False: LINE includes no file.
 */
bool git_config_included(struct str line, const char *folder, const char *home,
			 struct buf *path);

/* Read TEXT into CONFIG (initialised). Lines with wrong syntax count as active. */
void git_config_read(struct str text, struct git_config *config);

/*
 * The entries of a git index, versions 2 to 4, among them gitlinks (submodules, nested
 * repositories). See gitformat-index(5). The bytes are not trusted: a damaged index is
 * an error.
 */

enum {
	GIT_INDEX_MAX = 256 << 20, /* some two million files */
	GIT_HASH_MAX = 32,
};

/* A file as git last saw it. */
struct git_index_entry {
	struct str path;            /* valid during the call; without a NUL */
	uint32_t mode;              /* with its type */
	uint32_t mtime_s, mtime_ns; /* these and the next: the lower 32 bits */
	uint32_t ctime_s, ctime_ns, inode, size;
	const unsigned char *object; /* 20 or 32 bytes */
	bool unsure; /* in conflict, or not checked by git itself (skip-worktree …) */
};

struct git_index_reader {
	bool sha256; /* object names of 32 bytes instead of 20 */
	/* PATH is valid during the call; false ends the reading, with an error */
	bool (*link)(void *context, struct str path); /* or NULL */
	/* called for every entry that is no gitlink; or NULL; false as above */
	bool (*entry)(void *context, const struct git_index_entry *entry);
	void *context;
	/*
	 * result: the index has something that git never writes: a name that leads out of
	 * the worktree or into its `.git`, or a table that makes git, reading with
	 * several threads, find other entries
	 */
	bool unsound;
	/* result, when the index is split: NAME of the other part "sharedindex.NAME" */
	char shared[2 * GIT_HASH_MAX + 1];
};

/*
 * Call READER->entry for every file and READER->link for every gitlink of the index TEXT.
 * A sparse index has entries for whole folders; READER->link is called for these too,
 * with a path that ends in a slash. Entries by which a split index changes its other part
 * have no name and are left out. An extension that git may not ignore is an error
 * (ENOTSUP), except those of split and sparse indexes.
 */
bool readers_index_read(struct git_index_reader *reader, struct str text, struct err *err);

/*
 * Reads the one-line files and the work lists of a git folder: pointers (`.git` of a
 * linked worktree or submodule, `gitdir` and `commondir` of a worktree's folder) and the
 * remaining work of an interrupted rebase. The bytes are not trusted.
 */

/* Git writes less; a larger file is not accepted. */
enum { GIT_POINTER_MAX = 8 << 10, GIT_TODO_MAX = 4 << 20 };

/*
 * The path behind "gitdir:" of a `.git` file, as written. False when TEXT is no such
 * file.
 */
bool readers_text_pointer(struct str text, struct str *path);

/* The only path in a `gitdir` or `commondir` file. */
bool readers_text_line(struct str text, struct str *path);

/*
 * Does continuing the work list TEXT (git-rebase-todo, sequencer/todo) only do git's own
 * work on commits? An unknown command counts as executing a program.
 */
bool readers_text_todo_is_inert(struct str text);

/* Is TEXT a merge strategy of git itself, not a program `git-merge-NAME`? */
bool readers_text_strategy_is_own(struct str text);

/*
 * Are the options that `git am` passes to `git apply` (rebase-apply/apply-opt) free of
 * file names?
 */
bool readers_text_apply_is_inert(struct str text);

/*
 * Set PATH to the path of the next conflict in TEXT, a MERGE_RR, and TEXT to the rest.
 * PATH is empty when git does not write conflicts in this form. False at the end.
 */
bool readers_text_next_conflict(struct str *text, struct str *path);

/* Has TEXT only blank lines and comments? */
bool readers_text_is_empty(struct str text);
