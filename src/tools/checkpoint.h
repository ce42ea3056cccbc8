/*
 * checkpoint: what checkpoint.c and restore.c share; nobody else includes it.
 *
 * git's index is read by our own reader and not by `git ls-files`: the worker stays
 * usable, and no program of the project's configuration runs. The front makes the
 * links to git's objects, because the kernel makes no links across mounts.
 */
#pragma once

#include "base/hash.h"
#include "tool/call.h"
#include "tools/search/walk.h"
#include "undo/store.h"

#include <stdbool.h>
#include <stdint.h>

/* A file as the index records it. */
struct tracked {
	struct str path;
	uint32_t mode, mtime_s, mtime_ns, ctime_s, ctime_ns, inode, size;
	uint8_t object[UNDO_OBJECT];
	bool unsure;
};

struct tracked_files {
	struct tracked *items; /* in order of path */
	size_t count, room;
	struct arena paths;
	uint8_t object_size;
	int64_t index_mtime_ns; /* files that are younger are not trusted, as in git */
};

struct checkpoint {
	struct call *call;
	struct walk_start start;
	struct undo_list old, now;
	struct tracked_files tracked;
	struct undo_log log;
	bool is_step;  /* the differences are those of a command */
	bool may_link; /* git's objects are kept by hard links, which the front makes */
	bool has_git;  /* the workspace is a repository */
	int64_t began_ns;
	int64_t command_began_ns, command_ended_ns; /* of a step */
	/* results */
	struct value *nested; /* keys of folders far below the workspace that are repositories */
	struct value *links; /* new objects, to be linked */
	size_t unreadable;
	/* counts */
	size_t changed, added, removed;
	size_t strange; /* of these: changed before the command began, or after it ended */
	size_t copies, left_files;
	uint64_t bytes, left_bytes;
	/* the folder of all changes, "" for the workspace; NULL: there are none yet */
	char *below;
	bool differs; /* the new list differs from the old one */
	struct err trouble;
};

/*
 * A hash of the entries (path, type, object) in the index FILE, without the times by
 * which git recognises the files: every `git status` may renew these. False: the index
 * has more than that (a conflict, a submodule, another part), or cannot be read.
 */
bool checkpoint_index_says(int file, uint8_t digest[HASH_BYTES]);
/*
 * Is PATH one of git's objects? Then NAME is the part of PATH that is the object's name.
 */
bool checkpoint_is_object(struct str path, const char **name);
