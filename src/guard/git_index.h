/*
 * git_index: the entries of a git index, versions 2 to 4, and among them its gitlinks
 * (submodules, nested repositories) (gitformat-index(5)). Foreign bytes: an index that does not hold together is an error.
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

/* A file as git saw it last. */
struct git_index_entry {
	struct str path;            /* valid during the call; ends nowhere */
	uint32_t mode;              /* with its type */
	uint32_t mtime_s, mtime_ns; /* the lower 32 bits, as all of these */
	uint32_t ctime_s, ctime_ns, inode, size;
	const unsigned char *object; /* 20 or 32 bytes */
	bool unsure; /* a conflict, or what git itself does not look at (skip-worktree …) */
};

struct git_index_reader {
	bool sha256; /* object names of 32 bytes instead of 20 */
	/* PATH is valid during the call; false ends the reading, with an error */
	bool (*link)(void *context, struct str path); /* or NULL */
	/* every entry that is none of these; or NULL; false as above */
	bool (*entry)(void *context, const struct git_index_entry *entry);
	void *context;
	/*
	 * set when git would go where it never sends itself: a name that leads out of the worktree or
	 * into its `.git`, or a table by which a reader of several threads finds other entries
	 */
	bool unsound;
	/* set when the index is split: the name of the other part, as in "sharedindex.NAME" */
	char shared[2 * GIT_HASH_MAX + 1];
};

/*
 * Call READER->entry for every file and READER->link for every gitlink of the index TEXT, and for every folder that a sparse
 * index has in place of what is in it: its path ends in a slash. What a split index changes of its
 * other part has no name here, and is not told. An extension that git would not do without, and
 * that is neither a split nor a sparse one, is an error (ENOTSUP).
 */
bool git_index_read(struct git_index_reader *reader, struct str text, struct err *err);
