/*
 * commit_base: where a patch that was handed over can be committed: the newest commit in which
 * each of its files holds, by hash, what it held before the run, and is a plain file in plain
 * folders; and what git fast-import is told of the changes against it.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "tool/call.h"
#include "tools/patches/commit_git.h"
#include "tools/patches/take_patch.h"

#include <stdbool.h>
#include <stddef.h>

/* Back from HEAD; a run's own commits are few. */
enum { COMMITS_LOOKED_AT = 100 };

struct commit_entry;

struct commit_base {
	struct call *call;
	const struct handed *handed;
	struct buf prefix; /* of the workspace in its repository, "" or with a slash */
	/* out: */
	char commit[COMMIT_OBJECT_HEX + 1]; /* the one that was found */
	struct buf stream;                  /* its changes, as fast-import takes them */
	struct buf differing; /* lines: the files that differ in the newest one */
	/* for commit_base.c alone */
	const char **paths; /* all that is asked of a commit: files, and the folders above */
	struct buf *names; /* which hold the folders' names */
	size_t path_count, name_count;
	struct buf tree; /* of the commit that is looked at, as ls-tree prints it */
	struct commit_entry *entries;
	size_t entry_count;
	bool told; /* what differs in the newest */
};

/* Both are borrowed. */
void commit_base_init(struct commit_base *base, struct call *call,
		      const struct handed *handed);
void commit_base_fini(struct commit_base *base);

/*
 * Look at START (a name of git's) and MOST - 1 first parents behind it. *FOUND: one of them
 * fits. False: git failed, or the patch does not make what its record says.
 */
bool commit_base_find(struct commit_base *base, const char *start, unsigned most,
		      bool *found, struct err *err);
