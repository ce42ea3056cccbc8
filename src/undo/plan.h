/*
 * plan: what an undo has to restore: for each path of some steps, its state before
 * the first and after the last of them, and the place of its content. The front makes the
 * plan from logs that workers wrote. Another worker carries it out or turns it into a
 * patch, and gets one file with all of it.
 *
 * The internal tools `restore` and `git_contents` carry a plan out in the cell.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/value.h"
#include "undo/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct undo_item {
	struct str path;
	size_t order;
	bool beside; /* of a step that lies within another, or has others within it */
	struct undo_state target;   /* before the first step */
	struct undo_state expected; /* after the last */
};

struct undo_plan {
	struct undo_item *items; /* in order of path after undo_plan_settle */
	size_t count;
	struct arena paths;
	bool whole; /* every step was completed */
	/*
	 * set before the first undo_plan_add: the steps are of the session that makes the
	 * plan
	 */
	bool own;
	struct undo_refused refused;
	/* a command's step holds a file that a tool wrote before the command's last write */
	bool mixed;
	/*
	 * a file that somebody else has changed between two of the steps, so that they can
	 * be undone one by one only; data NULL: none is known
	 */
	struct str torn;
	/* cache of undo_plan_add: the changes of the step within_number; NULL: empty */
	struct undo_plan *within;
	uint32_t within_number;
};

void undo_plan_init(struct undo_plan *plan);
void undo_plan_fini(struct undo_plan *plan);

/*
 * Add the changes of the step NUMBER behind those in PLAN. A change that its session
 * could not have made goes into `refused` instead.
 *
 * A file that a file tool has written while a command ran is in the steps of both
 * (undo_store_note_beside). The tool's step then goes back to the state before the
 * command, because the tool has found what the command had written by then. Of two tools
 * that have written a file, the step of the second one goes back to what that tool has
 * found, and the first one's holds what the command wrote between them. The command's
 * step leaves out the file when the file is as the last tool has left it; else the command
 * has written the file once more, and its step goes back to the state before the command
 * as well.
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
 * does not exist any more has the source UNDO_NOWHERE.
 */
bool undo_plan_print(const struct undo_plan *plan, const struct undo_store *store,
		     enum undo_part part, bool with_contents, int from_git, int fd,
		     struct err *err);

/*
 * The steps that an undo is about. They are known before its cell is made, because the
 * cell binds the files that git follows read-only (protected.c), except those that these
 * steps have changed.
 */

struct undo_aim {
	const char *run; /* its steps up to `step`; NULL: only `step` itself */
	uint32_t step;   /* 0: the newest step that was not undone */
	int64_t turn_ms; /* only the steps of `run` in this turn; 0: in all turns */
	bool above;      /* all steps of everybody with larger numbers than `step` */
};

/*
 * The step NUMBER, or for 0 the newest step with files that was not undone and is no
 * undo. NULL: there is none.
 */
const struct undo_step *undo_aim_step(const struct undo_steps *steps, uint32_t number);
/*
 * Widen AIM from one step to all steps of its turn in STEPS; AIM borrows `run` from them.
 * A step without a turn (a single call, another agent's client) stays the only one.
 * False: there is no such step.
 */
bool undo_aim_widen(struct undo_aim *aim, const struct undo_steps *steps);
/*
 * Make AIM all steps above POINT in the store of WORKSPACE in FOLDER: the number of a step,
 * or the name of the newest mark of that name. False with ERR: there is neither.
 */
bool undo_aim_to(struct undo_aim *aim, const char *folder, const char *workspace,
		 const char *point, struct err *err);
/*
 * Call the present state of WORKSPACE NAME; *NUMBER gets the number of that mark. ERR.code
 * is EINVAL when NAME is no name for one.
 */
bool undo_aim_mark(const char *folder, const char *workspace, const char *name,
		   uint32_t *number, struct err *err);
/* Is STEP one of the steps of AIM, which names a run or all steps above one? */
bool undo_aim_has(const struct undo_aim *aim, const struct undo_step *step);

/*
 * Fill PLAN (initialised) with the changes of these steps that their sessions could
 * write, and settle it. FOLDER is as for undo_store_open. On failure PLAN is empty; the
 * undo itself reports the error later.
 */
void undo_aim_plan(const struct undo_aim *aim, const char *folder, const char *workspace,
		   struct undo_plan *plan);

/*
 * The result of undoing one or more steps, for people and for programs: how many files
 * were restored or removed, their names, and the files that were left unchanged.
 */

/* The changes that the patch of a session does not cover: the front writes it for generate_patch. */
struct undo_patch_limits {
	const char *without_commands; /* why it has none of their changes; NULL: it has */
	int64_t lost;                 /* steps whose changes are not known */
	struct value *outside;        /* the first granted folders that were written in */
};
extern const struct field undo_patch_limits_fields[];

struct undo_told {
	int64_t restored, removed, already;
	int64_t folders;     /* made, removed, or given their former permissions */
	struct value *files; /* path as shown -> "restored" or "removed" */
	struct value *left;  /* files that were left unchanged, with the reason */
};

void undo_told_init(struct undo_told *told);
void undo_told_fini(struct undo_told *told);

/*
 * Add the DETAILS of the tool restore, or those of undo_told_details. A file that is
 * named in several details counts once, as in the last of them.
 */
void undo_told_add(struct undo_told *told, const struct value *details);
/* Print the first files, each on a line. Files in `.git` are only counted. */
void undo_told_print_files(const struct undo_told *told, struct buf *text);
/* "3 files restored, 1 removed"; "0 files restored" for nothing. */
void undo_told_print_counts(const struct undo_told *told, struct buf *text);
void undo_told_print_left(const struct undo_told *told, struct buf *text);
/* Put all of TOLD into DETAILS as members. */
void undo_told_details(const struct undo_told *told, struct value *details);
