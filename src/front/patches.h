/*
 * patches: a patch that a run has handed over, as the verbs of `patch` show and
 * apply it. The record has the data of the journal's event and the decision of the
 * person. The event is not trusted: a member with a wrong form is empty in the record.
 */
#pragma once

#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/value.h"
#include "store/patches.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stdint.h>

struct patch_record {
	char id[PATCH_ID + 1];
	char session[JOURNAL_ID + 1];
	int64_t number, wall_ms;
	char *workspace, *agent, *model;
	struct value *event; /* owned; the members below point into it */
	const char *title, *summary;
	const char *run; /* the run that made the steps, or NULL (session_undo_run) */
	uint32_t last_step;
	const struct value *files; /* an array */
	struct str text;           /* the patch itself */
	char hash[HASH_HEX + 1];   /* of TEXT */
	size_t count, left_out;    /* files in the patch, and files that are only named */
	size_t caches;             /* caches besides these files (paint_count_caches) */
	size_t added, removed;     /* lines */
	enum patch_state state;
	int64_t decided_ms;
	char *place, *branch, *reason;
};

/*
 * Fill RECORD from ROW. False: ROW is no hand-over with changes. Call patch_record_fini
 * in either case.
 */
bool patch_record_read(const struct patch_row *row, struct patch_record *record);
void patch_record_fini(struct patch_record *record);

/*
 * Find in the user's journal the patch whose name begins with ID; `last` is the newest
 * patch of the working folder. PATH gets the path of the journal.
 */
bool patch_record_find(const char *id, struct patch_record *record, struct buf *path,
		       struct err *err);
/* Note the decision in the journal PATH. */
bool patch_record_decide(const struct patch_record *record, const char *path,
			 const struct patch_decision *decision, struct err *err);

/* The record as one object; WHOLE: with the summary and the patch. */
struct value *patch_record_value(const struct patch_record *record, bool whole);
/* The records of the files in the patch, in the form that tools take (take_patch.h). */
struct value *patch_record_files(const struct patch_record *record);

/*
 * Append the head of the patch: title, summary, files. No reader of patches takes the
 * head for a part of the patch.
 */
void patch_record_head(const struct patch_record *record, struct buf *out);

/* The text for a person about an applied patch, in place of the text for a model. */

/*
 * Replace RESULT's text by sentences from the details of take_patch: the outcome for the
 * files in WORKSPACE. DRY: nothing was changed, and the sentences say what would happen.
 */
void patches_tell_files(struct tool_result *result, const struct patch_record *record,
			const char *workspace, bool dry);
/* The same from the details of commit_patch: the commit and its branch. */
void patches_tell_commit(struct tool_result *result, const struct patch_record *record,
			 bool dry);

/*
 * This program under the name `apply_patch`, as it lies on the PATH in a cell: models
 * write `apply_patch <<'EOF'` into shell commands. It runs the tool's own function on
 * its input, and may write the files that the cell lets commands write.
 */

/*
 * Is argv[0] the name `apply_patch`? Then apply the patch, which is the only argument or,
 * without one, standard input; *CODE becomes the exit code.
 */
bool patches_program(int argc, char **argv, int *code);
