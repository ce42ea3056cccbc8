/*
 * undo_plan: what an undo has to restore: for each path of some steps, its state before
 * the first and after the last of them, and the place of its content. The front makes the
 * plan from logs that workers wrote. Another worker carries it out or turns it into a
 * patch, and gets one file with all of it.
 */
#pragma once
#include "base/err.h"
#include "undo/store.h"

#include <stdbool.h>
#include <stddef.h>

struct undo_item {
	struct str path;
	size_t order;
	struct undo_state target;   /* before the first step */
	struct undo_state expected; /* after the last */
};

struct undo_plan {
	struct undo_item *items; /* in order of path after undo_plan_settle */
	size_t count, room;
	struct arena paths;
	bool whole; /* every step was completed */
	/*
	 * set before the first undo_plan_add: the steps are of the session that makes the
	 * plan
	 */
	bool own;
	struct undo_refused refused;
};

void undo_plan_init(struct undo_plan *plan);
void undo_plan_fini(struct undo_plan *plan);

/*
 * Add the changes of the step NUMBER behind those in PLAN. A change that its session
 * could not have made goes into `refused` instead.
 */
bool undo_plan_add(struct undo_plan *plan, const struct undo_store *store,
		   uint32_t number, struct err *err);
/* Merge the items of each path into one, and remove items that change nothing. */
void undo_plan_settle(struct undo_plan *plan);

bool undo_plan_touches(const struct undo_plan *plan, struct str path);
/* Did the steps make the workspace's repository, so that undoing them removes it? */
bool undo_plan_takes_repository(const struct undo_plan *plan);

/* Which items: those in the git folder, which come first, or those outside. */
enum undo_part { UNDO_PART_GIT = 1, UNDO_PART_REST = 2, UNDO_PART_ALL = 3 };

/* The number of contents that have to be read from git. */
size_t undo_plan_wants_git(const struct undo_plan *plan);
/* Write into FD the log that the tool git_contents takes as input. */
bool undo_plan_print_wanted(const struct undo_plan *plan, int fd, struct err *err);
/* Read FD, the log that git_contents wrote. Its contents replace those in git. */
bool undo_plan_take_git(struct undo_plan *plan, int fd, struct err *err);

/*
 * Write into FD the log that the tools restore and generate_patch take, with contents
 * when WITH_CONTENTS. FROM_GIT is the log that git_contents wrote, or -1. A content that
 * no longer exists is an error (EIO, with the path), or, with MAY_MISS, has the source
 * UNDO_NOWHERE.
 */
bool undo_plan_print(const struct undo_plan *plan, const struct undo_store *store,
		     enum undo_part part, bool with_contents, int from_git, int fd,
		     bool may_miss, struct err *err);
