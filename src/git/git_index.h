/*
 * git_index: the gitlinks (submodules, nested repositories) of a git index, versions 2 to 4
 * (gitformat-index(5)). Foreign bytes: an index that does not hold together is an error.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

enum {
	GIT_INDEX_MAX = 256 << 20, /* some two million files */
	GIT_HASH_MAX = 32,
};

struct git_index_reader {
	bool sha256; /* object names of 32 bytes instead of 20 */
	/* PATH is valid during the call; false ends the reading, with an error */
	bool (*link)(void *context, struct str path);
	void *context;
	/* set when the index is split: the name of the other part, as in "sharedindex.NAME" */
	char shared[2 * GIT_HASH_MAX + 1];
};

/*
 * Call READER->link for every gitlink of the index TEXT, and for every folder that a sparse
 * index has in place of what is in it: its path ends in a slash.
 */
bool git_index_read(struct git_index_reader *reader, struct str text, struct err *err);
