/*
 * audit_tell: writes the findings of an audit (audit.h) into a call's result, as text for
 * the model and as details for programs, and reads them from there.
 */
#pragma once
#include "base/buf.h"
#include "base/value.h"
#include "tool/tool.h"

#include <stdbool.h>

/* The audit could not be completed because of WHY: RESULT becomes failed. */
void audit_tell_failed(struct tool_result *result, const char *why);
/*
 * The audit looked into FOLDERS folders and left out others, such as MISSED and those
 * after it (NULL: unknown). RESULT does not become failed.
 */
void audit_tell_partial(struct tool_result *result, size_t folders, const char *missed);
/* Append the sentence of audit_tell_partial, with MISSED as it is shown. */
void audit_add_partial(struct buf *out, size_t folders, const char *missed);
/* The same as a note for the front only. The model is told when no whole look follows. */
void audit_note_partial(struct tool_result *result, size_t folders);
/*
 * Remove that note from RESULT, because a whole look follows. Returns whether there was
 * one.
 */
bool audit_take_partial(struct tool_result *result);
/* Append the same sentence for people, or nothing when RESULT's audit was not partial. */
void audit_print_partial(const struct tool_result *result, struct buf *out);
/*
 * For the front: no audit was made because of WHY. RESULT says so and does not become
 * failed.
 */
void audit_tell_lost(struct tool_result *result, const char *why);
/* PATH, which is bound read-only, was changed through another hard link: a denial. */
void audit_tell_linked(struct tool_result *result, const char *workspace, const char *path);
/*
 * PATH, which was new or changed, now has the last name AWAY: a denial and an item of
 * `quarantined`.
 */
void audit_tell_moved(struct tool_result *result, const char *workspace, const char *path,
		      const char *away);
/*
 * PATH stays, and it is unknown whether it was there before or was moved there: an item
 * of `doubtful`. audit_end_doubtful adds one line for all of them at the end.
 */
void audit_tell_doubtful(struct tool_result *result, const char *workspace,
			 const char *path);
void audit_end_doubtful(struct tool_result *result);
/* Append that line of RESULT for people, or nothing when there are none. */
void audit_print_doubtful(const struct tool_result *result, struct buf *out);
/* FILES, which other programs run by themselves, were written: `changed_autoexec`. */
void audit_tell_files(const struct value *files, const char *workspace,
		      struct tool_result *result);

/*
 * Put LEFT (git_scan.h; NULL: nothing) into RESULT's details for the front.
 * audit_take_left returns what is in those of FROM, or NULL.
 */
void audit_note_left(struct tool_result *result, struct value *left);
struct value *audit_take_left(struct tool_result *from);
/* PATH, which a killed git had left, was removed: `git_put_away`. */
void audit_tell_put_away(struct tool_result *result, const char *workspace,
			 const char *path);
/* The lock PATH appeared during the call and stays because of WHY: `git_locks`. */
void audit_tell_held(struct tool_result *result, const char *workspace, const char *path,
		     const char *why);
/* Add one line for all of these at the end; and append the same of RESULT for people. */
void audit_end_left(struct tool_result *result);
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
