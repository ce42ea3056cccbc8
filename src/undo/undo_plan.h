/*
 * undo_plan: what has to be put back: for each path of some steps, what it held before the
 * first and after the last of them, and where the content lies. Made by the front of logs that
 * workers wrote; carried out, or turned into a patch, by another worker, which gets one file
 * with all of it.
 */
#pragma once
#include "base/err.h"
#include "undo/undo_list.h"
#include "undo/undo_store.h"

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
	bool whole; /* every step came to its end */
	bool own; /* set before the first: the steps are of the session that makes the plan */
	struct undo_refused refused;
};

void undo_plan_init(struct undo_plan *plan);
void undo_plan_fini(struct undo_plan *plan);

/*
 * The changes of the step NUMBER, after those that are there. What its session could not have
 * done is not among them, but `refused`.
 */
bool undo_plan_add(struct undo_plan *plan, const struct undo_store *store,
		   uint32_t number, struct err *err);
/* One item for each path; those that come to nothing go. */
void undo_plan_settle(struct undo_plan *plan);

bool undo_plan_touches(const struct undo_plan *plan, struct str path);
/* Did the steps make the workspace's repository, so that it goes? */
bool undo_plan_takes_repository(const struct undo_plan *plan);

/* Which items: those in the git folder, which come first, or those outside. */
enum undo_part { UNDO_PART_GIT = 1, UNDO_PART_REST = 2, UNDO_PART_ALL = 3 };

/* How many contents have to be had out of git. */
size_t undo_plan_wants_git(const struct undo_plan *plan);
/* Write into FD the log that tool git_contents takes. */
bool undo_plan_print_wanted(const struct undo_plan *plan, int fd, struct err *err);
/* What that tool got, in its log FD: contents are from now on there. */
bool undo_plan_take_git(struct undo_plan *plan, int fd, struct err *err);

/*
 * Write into FD the log that the tools restore and generate_patch take, with contents when
 * WITH_CONTENTS. FROM_GIT is the log of git's, or -1. A content that nobody has any more: EIO
 * with the path, or, when MAY_MISS, it is UNDO_NOWHERE there.
 */
bool undo_plan_print(const struct undo_plan *plan, const struct undo_store *store,
		     enum undo_part part, bool with_contents, int from_git, int fd,
		     bool may_miss, struct err *err);
