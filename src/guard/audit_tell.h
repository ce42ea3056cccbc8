/*
 * audit_tell: what an audit (audit.h) found, in a call's result: text for the model, details
 * for programs; and what others read there.
 */
#pragma once
#include "base/buf.h"
#include "base/value.h"
#include "tool/tool.h"

#include <stdbool.h>

/* It could not be made whole, because of WHY: RESULT is failed. */
void audit_tell_failed(struct tool_result *result, const char *why);
/*
 * It looked into FOLDERS folders, and there are more, such as those at and behind MISSED (NULL:
 * not known). RESULT stays what it was.
 */
void audit_tell_partial(struct tool_result *result, size_t folders, const char *missed);
/* The sentence for that; MISSED as it is shown. */
void audit_add_partial(struct buf *out, size_t folders, const char *missed);
/* The same for the front alone, in words it is said when no whole look follows. */
void audit_note_partial(struct tool_result *result, size_t folders);
/* It was said so of RESULT, and no more from now on: a whole look follows. */
bool audit_take_partial(struct tool_result *result);
/* The same of RESULT for people, nothing when it did not happen. */
void audit_print_partial(const struct tool_result *result, struct buf *out);
/* In the front: none was made, because of WHY. RESULT stays what it was, and says so. */
void audit_tell_lost(struct tool_result *result, const char *why);
/* PATH, which is held read-only, was changed by another name that it has, a hard link: a denial. */
void audit_tell_linked(struct tool_result *result, const char *workspace, const char *path);
/* PATH, which was new or changed, has the last name AWAY now: a denial, and `quarantined`. */
void audit_tell_moved(struct tool_result *result, const char *workspace, const char *path,
		      const char *away);
/*
 * PATH stays, and nobody knows whether it was there before or was moved there: `doubtful`. A line
 * of all of them ends the look.
 */
void audit_tell_doubtful(struct tool_result *result, const char *workspace,
			 const char *path);
void audit_end_doubtful(struct tool_result *result);
/* The same of RESULT for people, nothing when there are none. */
void audit_print_doubtful(const struct tool_result *result, struct buf *out);
/* FILES that other programs run by themselves were written: `changed_autoexec`. */
void audit_tell_files(const struct value *files, const char *workspace,
		      struct tool_result *result);

/* LEFT (git_scan.h; NULL: nothing) for the front, in RESULT's details; and what FROM noted, or NULL. */
void audit_note_left(struct tool_result *result, struct value *left);
struct value *audit_take_left(struct tool_result *from);
/* PATH, left by a git that was killed, is removed: `git_put_away`. */
void audit_tell_put_away(struct tool_result *result, const char *workspace,
			 const char *path);
/* The lock PATH came while the call ran and stays, for WHY: `git_locks`. */
void audit_tell_held(struct tool_result *result, const char *workspace, const char *path,
		     const char *why);
/* One line for all of these ends the look; and the same of RESULT for people. */
void audit_end_left(struct tool_result *result);
void audit_print_left(const struct tool_result *result, struct buf *out);

bool audit_is_partial(const struct tool_result *result); /* it has not seen all folders */
bool audit_failed(const struct tool_result *result); /* it was not made, or not whole */
bool audit_quarantined(const struct tool_result *result); /* it put something away */

/* The files in RESULT's `changed_autoexec` as one sentence, nothing when there are none. */
void audit_print_files(const struct tool_result *result, struct buf *out);

/* Move what an audit said in FROM (no more than that, and all its text) to SAID, initialised. */
void audit_split(struct tool_result *from, struct tool_result *said);

/* Move what an audit said in FROM (text, denials, quarantined …) to the end of RESULT. */
void audit_take(struct tool_result *result, struct tool_result *from);
