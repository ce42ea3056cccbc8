/*
 * guard: protects the files that git would run or follow (scan.h). Those that exist
 * when a cell is made are bound read-only in the view (protected.c). A file that appears
 * later, or is changed past its bind mount, is found by the audit. The audit runs after
 * each call that could write, when none of its processes is left. It moves such a file
 * aside, never deletes it, and reports it.
 *
 * The audit compares with the guard, an object that is made once with the cell. Its
 * members: `workspace`, `roots`, `watched`, `files` and `opened` (lists of paths; the
 * protected names in `opened`, and those above such a name, may be written), `deep` (the
 * roots that each audit walks through, `folders` folders at most), `whole` (the roots
 * that a whole look walks through), `complete` (true: audit_begin has seen all of these),
 * `tells` (true: it has not, and the audits do not try), `one_call` (true: a whole look
 * follows when a command's audit has not seen all), `began` (nanoseconds, wall clock:
 * older files were there before), `ticked` (the same by the kernel's clock for files:
 * only older files were certainly there before), `dangers` (path -> fingerprint),
 * `indexes` (only to save time), `leads` (scan.h), and, when not all was seen,
 * `places` (folders near the root -> inode: a folder with the same path and inode was not
 * moved since).
 *
 * Repositories deep in a workspace are found while the cell runs, by the checkpoints of
 * undo. They are in `more`, an object with `watched`, `dangers` and `indexes`, which goes
 * to the worker with each call (keeper.c).
 *
 * Of a nested repository only the dangerous files are moved aside, each in its own
 * folder, and not the repository: the agent's commits in it stay where they are, and a
 * rename in one folder works behind any pin. Repositories that lie deep and that no
 * index names are audited and not bound, because a build must be able to remove its
 * checkouts, and each bind mount would be copied into every worker. Where no
 * checkpoint finds them, scan.c looks; where a tree is too large for that with every
 * call, a whole look follows at the end, for which session/running.c asks.
 *
 * The audit compares the time of the last change of an inode and not that of its
 * content, which a command could set. Configurations and pointers are compared by what
 * they say.
 *
 * The cell of an undo may write the files that its steps have changed (`opened`). The
 * audit also finds locks and temporary files of a killed git. The front judges them,
 * because it sees the processes of the machine (session/left.c), and a fresh worker
 * removes them.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <time.h>

struct audit;

/* The name of a call that only makes an audit. */
#define AUDIT_CALL "audit"
/*
 * Arguments of such a call, about files that a killed git left: see audit_find_left and
 * audit_put_left_away.
 */
#define LEFT_SINCE "since"
#define LEFT_FOUND "left"

/*
 * Add `dangers`, as they are now, to GUARD, which has the other members. `repositories`
 * and `held` are added for the caller that binds them. Repositories far down in a root of
 * `deep` are not among these; the paths of their folders are in `nested`. `partial` is
 * set when such a root has too many folders, and `seen` is the number of folders that
 * were read.
 */
bool audit_begin(struct value *guard, struct err *err);

/*
 * For the front: fill MORE, whose `watched` are folders that a first look found. Its
 * `dangers` become the files there that are dangerous now and were so before the guard
 * began. RAN: something of the session has run, so a file that changed in that very clock
 * tick counts as changed later.
 */
bool audit_begin_more(const struct value *guard, struct value *more, bool ran,
		      struct err *err);

/*
 * Make what a worker needs for its audits, with the roots of GUARD opened before any call
 * waits. GUARD stays the caller's. GUARD NULL (nothing may be written): returns NULL.
 */
struct audit *audit_open(const struct value *guard);
void audit_close(struct audit *audit);

enum audit_reach {
	AUDIT_NEAR,  /* at the end of each call: searches the roots in `deep`, if any */
	AUDIT_WHOLE, /* also the roots in `whole`, for one second of work at most */
	AUDIT_ALL,   /* like AUDIT_WHOLE, with all roots, even those that undo looks at */
};

/*
 * In a worker, when nothing else of the call runs: compare with the guard (AUDIT NULL: do
 * nothing) and with MORE (or NULL), and move new dangers aside. RESULT reports this in
 * `denials` and `quarantined`, and after a command (SINCE, its beginning, is not NULL) in
 * `changed_autoexec`. When the audit cannot be made, RESULT becomes failed and says so.
 *
 * QUIET_NS (wall clock; 0: unknown): at this time everything of the session had been
 * audited, and nothing of it was running. A protected file that is older was made by a
 * person.
 */
void audit_run(struct audit *audit, const struct value *more, enum audit_reach reach,
	       const struct timespec *since, int64_t quiet_ns, struct tool_result *result);

/*
 * Locks and temporary files that a killed git leaves are removed, because nobody needs
 * them and every later git would stop at a lock. A worker cannot know whether a git
 * outside the cell holds such a file, so this takes two steps, and the front decides in
 * between (running.c). audit_run does the first step for the time since a command
 * began.
 *
 * Step one: note in RESULT's details (audit_note_left) the files of this kind that have
 * come since SINCE_NS, in the folders that the audit of a call looks at.
 */
void audit_find_left(struct audit *audit, const struct value *more, int64_t since_ns,
		     struct tool_result *result);
/*
 * Step two: remove the files in LEFT, an object like `left` of git_scan, if they are
 * still the same files. An item with `held`, a text that names the holder, stays. RESULT
 * reports the removed files and the locks that are still there.
 */
void audit_put_left_away(struct audit *audit, const struct value *left,
			 struct tool_result *result);

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
 * Append the sentence of audit_add_partial for people, or nothing when RESULT's audit
 * was not partial.
 */
void audit_print_partial(const struct tool_result *result, struct buf *out);
/*
 * For the front: no audit was made because of WHY. RESULT says so and does not become
 * failed.
 */
void audit_tell_lost(struct tool_result *result, const char *why);
/*
 * Append a line for people about the files in RESULT's `doubtful`, or nothing when
 * there are none.
 */
void audit_print_doubtful(const struct tool_result *result, struct buf *out);

/*
 * Remove the files that a killed git may have left (`left` of scan.h) from FROM's
 * details and return them; NULL: there are none. The caller owns them.
 */
struct value *audit_take_left(struct tool_result *from);

/*
 * Append for people which files of a killed git RESULT's audit has removed, and which
 * locks stay; nothing when there are none.
 */
void audit_print_left(const struct tool_result *result, struct buf *out);

/* the audit has not seen all folders */
bool audit_is_partial(const struct tool_result *result);
/* the audit was not made, or not completed */
bool audit_failed(const struct tool_result *result);
/* the audit moved a file aside */
bool audit_quarantined(const struct tool_result *result);

/*
 * Append the files in RESULT's `changed_autoexec` as one sentence, or nothing when there
 * are none.
 */
void audit_print_files(const struct tool_result *result, struct buf *out);

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
