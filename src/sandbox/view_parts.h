/*
 * view_parts: what the view's files share; see view.c. Each function is false, or -1 with
 * errno, when it failed.
 */
#pragma once
#include "base/err.h"
#include "sandbox/view.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where the sources of masks lie, in the folder `own`. */
#define VIEW_EMPTY_FILE   "nothing"
#define VIEW_EMPTY_FOLDER "nothing.d"

enum { VIEW_FOLDER_MODE = 0755, VIEW_FILE_MODE = 0444 };

/*
 * The view under construction. Entries come shallow before deep and sorted by path, so
 * those of one folder follow each other and a held folder is never covered afterwards.
 */
struct view_building {
	int root;
	int own;             /* folder of texts and of the sources of masks */
	unsigned texts;      /* in it */
	int folder;          /* where the last entry was placed; -1: nothing held yet */
	char held[PATH_MAX]; /* its path */
};

/* Set ERR from errno, with STEP and PATH in its text. Returns false. */
bool view_fail(struct err *err, const char *step, const char *path);

/*
 * A detached tmpfs of SIZE bytes. FILES is how many may lie in it, since the kernel counts none of
 * the memory that a name takes; 0: as many as it likes.
 */
int view_new_memory(uint64_t size, uint64_t files, mode_t mode, unsigned attributes);

/* Open PATH of the view; a link anywhere in PATH is an error. */
int view_open(int root, const char *path, int flags);

/* Make PATH a directory of the view, with its parents, and open it. */
int view_make_folder(int root, const char *path);

/* Hold the folder that PATH lies in; MAKE: with what is missing of it. */
bool view_hold_folder(struct view_building *building, const char *path, bool make);

/*
 * Mount MOUNT_FD at PATH. The mount point is a directory, or an empty file for anything
 * else. An existing file is left as it is; an existing link is not followed.
 */
bool view_place(struct view_building *building, int mount_fd, const char *path,
		bool is_folder, struct err *err);

/* SET: MOUNT_ATTR_… that TREE and what is mounted below it gets. */
bool view_set_attributes(int tree, uint64_t set, const char *path, struct err *err);

/* Show ENTRY; those that come before it in the order of sandbox_build are there. */
bool view_add(struct view_building *building, struct view_entry *entry, struct err *err);
