/*
 * audit: what git would run or follow (git_scan.h) is protected. What is there when a cell
 * is made is bound read-only in the view (shape_git.c); what appears afterwards, or was
 * changed past a bind, is found here, after each call that could write, when nothing of it
 * runs any more. It is put away, never deleted, and told.
 *
 * The start of a comparison is the guard, made once with the cell: an object with
 * `workspace`, `roots`, `watched`, `files` and `opened` (lists of paths; protected names in `opened`,
 * or above one in it, may be written), `deep` (those roots that
 * each audit goes through, as far as `folders` go), `whole` (those that a whole look goes
 * through), `complete` (true: the beginning has seen all of these), `tells` (true: it has not, and
 * the audits do not try), `one_call` (true: a whole look follows a command's audit that has not
 * seen all), `began` (nanoseconds, wall clock: what is older was there before), `ticked` (the same
 * of the kernel's clock for files: what is not older may have come since), `dangers` (path ->
 * fingerprint), `indexes`, which only save time, `leads` (git_scan.h), and, where not all was seen, `places` (folders
 * near the root -> inode: they have not been moved since while they are there).
 *
 * What lies deep in a workspace whose checkpoints look there (undo) is found by these, while
 * the cell runs. That is `more`: an object with `watched`, `dangers` and `indexes`, which goes
 * to the worker with each call (session_nested.c).
 */
#pragma once
#include "base/err.h"
#include "base/value.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <time.h>

struct audit;

/* The name of the call that is nothing but an audit. */
#define AUDIT_CALL "audit"
/* What it may carry, of files that a killed git left: see audit_find_left, audit_put_left_away. */
#define LEFT_SINCE "since"
#define LEFT_FOUND "left"

/*
 * Complete GUARD, which has the others, by the `dangers` of now; `repositories` and `held`
 * are put there too, for who binds them (not those that a root in `deep` has far down: the paths
 * of their folders are `nested`), `partial` when such a root has too many folders, and how many
 * were `seen`.
 */
bool audit_begin(struct value *guard, struct err *err);

/*
 * The front's: fill MORE, whose `watched` are folders that a first look found, by what is
 * dangerous in them now and was so before the guard began. RAN: something of the session has
 * run, so that what changed in that very tick counts as later.
 */
bool audit_begin_more(const struct value *guard, struct value *more, bool ran,
		      struct err *err);

/*
 * What a worker needs for its audits, with the roots of GUARD opened while nobody waits. GUARD
 * NULL: nothing may be written, and NULL is the answer. It stays the caller's.
 */
struct audit *audit_open(const struct value *guard);
void audit_close(struct audit *audit);

enum audit_reach {
	AUDIT_NEAR,  /* what each call ends with: the roots in `deep`, if any */
	AUDIT_WHOLE, /* those in `whole`, as far as a second goes */
	AUDIT_ALL,   /* the same of all roots, whoever else looks there */
};

/*
 * In a worker, nothing else of the call running: compare with the guard (AUDIT NULL: nothing is
 * looked at) and with MORE (or NULL), put away what is new, tell it in RESULT: `denials` and
 * `quarantined`, and for a command (SINCE, its beginning, not NULL) `changed_autoexec`. When the
 * audit cannot be made, RESULT is failed and says so. How it tells: audit_tell.h.
 *
 * QUIET_NS (wall clock): until then everything of the session was looked at, and nothing of it ran;
 * the protected file that came before is a person's. 0: no such time is known.
 */
void audit_run(struct audit *audit, const struct value *more, enum audit_reach reach,
	       const struct timespec *since, int64_t quiet_ns, struct tool_result *result);

/*
 * What a git that was killed leaves (locks, temporary files) is removed: nothing else of it can be
 * wanted, and every later git would stop at it. A worker cannot know whether a git outside of the
 * cell holds such a file, so there are two steps with the front's judgement (running_left.c) in
 * between. audit_run does the first one for a command, since its beginning.
 *
 * First: note in RESULT's details what has come since SINCE_NS where audits of calls look:
 * audit_note_left.
 */
void audit_find_left(struct audit *audit, const struct value *more, int64_t since_ns,
		     struct tool_result *result);
/*
 * Then: remove what LEFT has, an object as git_scan's `left`, as far as it is still the same file.
 * An item with `held`, a text that says by whom, stays. RESULT tells what was removed, and which
 * locks are still there.
 */
void audit_put_left_away(struct audit *audit, const struct value *left,
			 struct tool_result *result);
