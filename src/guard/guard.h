/*
 * guard: protects the files that git would run or follow (scan.h). Those that exist
 * when a cell is made are bound read-only in the view (protected.c). A file that appears
 * later, or is changed past its bind mount, is found by the audit. The audit runs after
 * each call that could write, when none of its processes is left. It moves such a file
 * aside, never deletes it, and reports it.
 *
 * The rule is one scan compared with one set. The set of marks that the scan of the
 * beginning has found is the guard. An audit scans again, and each danger or lead that is
 * new or differs is put aside. The names that the view binds read-only are of the same
 * set.
 *
 * A scan looks at the tops of the roots and at all that is watched, and then walks
 * through whole roots. How far depends on the root, because an audit after each call must
 * not read a large tree: a root of up to GIT_SCAN_FOLDERS_CALL folders is walked by each
 * audit, and a larger one by the last look of the session (session/running.c). A root in
 * which the looks of undo walk is left to them, unless they have failed. The repositories
 * that they find on their way are a set too, which goes to the worker with each call:
 * `more` (keeper.c).
 *
 * A root that the guard itself has not seen whole has files that it does not know. Their
 * age decides then: what was there before the guard began stays.
 *
 * Of a nested repository only the dangerous files are moved aside, each in its own
 * folder, and not the repository: the agent's commits in it stay where they are, and a
 * rename in one folder works behind any pin. Repositories that lie deep and that no
 * index names are audited and not bound, because a build must be able to remove its
 * checkouts, and each bind mount would be copied into every worker.
 *
 * The audit compares the time of the last change of an inode and not that of its
 * content, which a command could set. Configurations and pointers are compared by what
 * they say.
 *
 * The cell of an undo may write the files that its steps have changed (MARK_OPENED). The
 * audit also finds locks and temporary files of a killed git. The front judges them,
 * because it sees the processes of the machine (session/left.c), and a fresh worker
 * removes them.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "guard/scan.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

/* Which look walks through a root. One that reaches a line reaches those above it. */
enum guard_walk {
	GUARD_CALLS, /* the audit of each call; it has few folders */
	GUARD_LAST,  /* the last look; the guard knows all that was there */
	GUARD_PART,  /* the last look; the guard has not seen all folders */
	/*
	 * the last look when it is asked to; else the looks of undo find the repositories
	 */
	GUARD_UNDO,
};

struct guard {
	char *workspace, *home; /* HOME: of the user, or NULL */
	/*
	 * where the cell shows the workspace as well (view/shape.h), if this machine has nothing
	 * there; or NULL
	 */
	char *at;
	struct guard_root {
		char *path;
		enum guard_walk walk;
		/*
		 * It is a layer that was empty when the guard began, and nothing else that can be
		 * written is shown in it (git_scan_root).
		 */
		bool layer;
		/* what lay there for guard_hold_root; inode 0: nobody has looked */
		dev_t device;
		ino_t inode;
	} * roots;
	size_t root_count;
	int64_t began_ns; /* wall clock: older files were there before */
	/*
	 * the same by the kernel's clock for files, which goes in steps and lies up to some ms
	 * behind: only older files were certainly there before. One that was made in the same
	 * step counts as new where the age decides; waiting for the next step would cost
	 * each cell as long as a third of its start
	 */
	int64_t ticked_ns;
	/*
	 * The guard began with that of an earlier front, which has died. Files that it did
	 * not know are of unknown age.
	 */
	bool earlier;
	struct marks marks;
};

void guard_free(struct guard *guard); /* NULL is fine */
void guard_add_root(struct guard *guard, const char *path, enum guard_walk walk);
/* Has GUARD (or NULL) a root of this kind? */
bool guard_has(const struct guard *guard, enum guard_walk walk);
/*
 * GUARD as a JSON object, for the worker and for a later front; and back. NULL: OBJECT is
 * none, because a member is missing or of no sense, which ERR (may be NULL) names.
 */
struct value *guard_print(const struct guard *guard);
struct guard *guard_parse(const struct value *object, struct err *err);
/*
 * GUARD, of the present files, becomes the guard with which a front began that has died:
 * dangers that EARLIER does not know become MARK_LATE, unless EARLIER could not see them
 * and they were there. When EARLIER is NULL, or lacks roots or times, its record is
 * damaged. The guard then begins at MADE_NS (the kernel's clock for files), when the
 * record was made, and only files that are certainly older are no MARK_LATE.
 */
void guard_take_earlier(struct guard *guard, const struct guard *earlier, int64_t made_ns);
/* Add to GUARD, of folders that a person has granted, all that CELL's own guard has. */
void guard_join(struct guard *guard, const struct guard *cell);
/*
 * In the anchor of a cell whose view stands: note which file or folder ROOT, of a guard, is. From
 * then on guard_holds and every audit fail where something else lies at its path. False: nothing
 * could be noted, so that the cell must not begin.
 */
bool guard_hold_root(struct guard_root *root, struct err *err);
/* Is each root of GUARD (NULL is fine) still what was noted? False: ERR names the root. */
bool guard_holds(const struct guard *guard, struct err *err);

struct audit;

/* The name of a call that only makes an audit. */
#define AUDIT_CALL "audit"

/*
 * Add to GUARD the marks of all that is there now, and settle the walk of each root that
 * is not GUARD_UNDO. Of one root FOLDERS folders are read at most.
 */
bool audit_begin(struct guard *guard, size_t folders, struct err *err);

/*
 * MORE has folders to watch, which a first look found. Add the dangers there that are
 * not in GUARD and were there before it began. RAN: something of the session has run, so
 * a file that changed in that very clock tick counts as changed later.
 */
bool audit_begin_more(const struct guard *guard, struct marks *more, bool ran,
		      struct err *err);

/*
 * Make what a worker needs for its audits, with the roots of GUARD opened before any call
 * waits. GUARD stays the caller's. GUARD NULL (nothing may be written): returns NULL.
 */
struct audit *audit_open(const struct guard *guard);
void audit_close(struct audit *audit);

/* The questions that an audit answers. */
struct audit_call {
	const struct marks *more; /* or NULL */
	/*
	 * The audit walks through the roots up to this walk: at the end of each call through
	 * those of GUARD_CALLS. A whole look, from GUARD_LAST on, works for one second at
	 * most.
	 */
	enum guard_walk reach;
	const struct timespec *since; /* the beginning of a command; NULL: of no command */
	/*
	 * At this time (wall clock; 0: unknown) everything of the session had been
	 * audited, and nothing of it was running. A protected file that is older was made
	 * by a person.
	 */
	int64_t quiet_ns;
	/* no call follows: when a command's audit is partial, a whole look makes it up */
	bool is_last;
};

/*
 * In a worker, when nothing else of the call runs: compare with the guard (AUDIT NULL: do
 * nothing) and with `more`, and move new dangers aside. RESULT reports this in `denials`
 * and `quarantined`, and after a command in `changed_autoexec`. When the audit cannot be
 * made, RESULT says so.
 */
void audit_run(struct audit *audit, const struct audit_call *call,
	       struct tool_result *result);

/*
 * Locks and temporary files that a killed git leaves are removed, because nobody needs
 * them and every later git would stop at a lock. A worker cannot know whether a git
 * outside the cell holds such a file, so this takes two steps, and the front decides in
 * between (running.c). audit_run does the first step for the time since a command
 * began.
 *
 * CARRIED is what the call brought along (audit_carry_left, or NULL). With a time it asks
 * for step one: note in RESULT's details (audit_take_left) the files of this kind that
 * have come since, in the folders that the audit of a call looks at. With files it asks
 * for step two: remove these if they are still the same files. One that is held stays.
 * RESULT reports the removed files and the locks that are still there.
 */
void audit_look_left(struct audit *audit, const struct marks *more,
		     const struct value *carried, struct tool_result *result);

/*
 * Writes the findings of an audit into a call's result, as text for the model and as
 * details for programs, and reads them from there.
 */

/* The audit could not be completed because of WHY: RESULT becomes failed. */
void audit_tell_failed(struct tool_result *result, const char *why);
/*
 * Append a sentence: an audit has seen only the first FOLDERS folders, and not all
 * behind MISSED (as it is shown; NULL: unknown).
 */
void audit_add_partial(struct buf *out, size_t folders, const char *missed);
/*
 * Remove the note of a partial audit from RESULT, because a whole look follows. Returns
 * whether there was a note.
 */
bool audit_take_partial(struct tool_result *result);
/*
 * For the front: no audit was made because of WHY. RESULT says so and does not become
 * failed.
 */
void audit_tell_lost(struct tool_result *result, const char *why);

/*
 * Append for people, without a line end, what RESULT's audit says of one thing; nothing
 * when there is none.
 */
enum audit_line {
	AUDIT_FILES,    /* changed files that other programs run by themselves */
	AUDIT_DOUBTFUL, /* files that may have been moved to where they are */
	AUDIT_LEFT,     /* files of a killed git that were removed, and locks that stay */
	AUDIT_PARTIAL,  /* folders that the audit has not seen */
	AUDIT_LINES,
};
void audit_print_line(const struct tool_result *result, enum audit_line line,
		      struct buf *out);

/* Move the files that a killed git may have left from FROM's details to LEFT. */
void audit_take_left(struct tool_result *from, struct git_left *left);
/* An object for audit_look_left; SINCE_NS 0: only LEFT. The caller frees it. */
struct value *audit_carry_left(int64_t since_ns, const struct git_left *left);

/* the audit has not seen all folders */
bool audit_is_partial(const struct tool_result *result);
/* the audit was not made, or not completed */
bool audit_failed(const struct tool_result *result);
/* the audit moved a file aside */
bool audit_quarantined(const struct tool_result *result);

/*
 * Move the audit's part of FROM's details, and all of FROM's text, to SAID, which is
 * initialised.
 */
void audit_split(struct tool_result *from, struct tool_result *said);

/*
 * Move the report of an audit in FROM (text, denials, quarantined …) to the end of
 * RESULT.
 */
void audit_take(struct tool_result *result, struct tool_result *from);
