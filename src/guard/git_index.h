/*
 * git_index: the entries of a git index, versions 2 to 4, among them gitlinks
 * (submodules, nested repositories). See gitformat-index(5). The bytes are not trusted: a
 * damaged index is an error.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

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
bool git_index_read(struct git_index_reader *reader, struct str text, struct err *err);
