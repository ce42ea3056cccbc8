/*
 * patch_record: a patch that a run has handed over, as the verbs of `patch` show and apply it:
 * what the journal's event says of it, and what was decided. The event is read as foreign: what
 * is not as it should be is empty here.
 */
#pragma once
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/value.h"
#include "store/patches.h"

#include <stdbool.h>
#include <stdint.h>

struct patch_record {
	char id[PATCH_ID + 1];
	char session[JOURNAL_ID + 1];
	int64_t number, wall_ms;
	char *workspace, *agent, *model;
	struct value *event; /* what follows points into it */
	const char *title, *summary;
	const char *run; /* of whose steps it is made, or NULL (session_undo_run) */
	uint32_t last_step;
	const struct value *files; /* an array */
	struct str text;           /* the patch itself */
	char hash[HASH_HEX + 1];   /* of TEXT */
	size_t count, left_out; /* files in it, and files it names without having them */
	size_t caches;          /* beside these (patch_record_caches) */
	size_t added, removed;  /* lines */
	enum patch_state state;
	int64_t decided_ms;
	char *place, *branch, *reason;
};

/*
 * Fill RECORD from ROW. False: it is no hand-over that changed anything. patch_record_fini in
 * either case.
 */
bool patch_record_read(const struct patch_row *row, struct patch_record *record);
void patch_record_fini(struct patch_record *record);

/*
 * The one whose name begins with ID, or `last`, the newest of the folder where one is, from the
 * user's journal; its path in PATH.
 */
bool patch_record_find(const char *id, struct patch_record *record, struct buf *path,
		       struct err *err);
/* Note the decision in the journal PATH. */
bool patch_record_decide(const struct patch_record *record, const char *path,
			 const struct patch_decision *decision, struct err *err);

/* As one object; WHOLE: with the summary and the patch. */
struct value *patch_record_value(const struct patch_record *record, bool whole);
/* The records of the files that are in the patch, as tools take them (handed.h). */
struct value *patch_record_files(const struct patch_record *record);

/*
 * Of the record of a file, and of an array of them, as generate_patch makes these: one of
 * Python's caches (__pycache__), which are many, and nobody's work.
 */
bool patch_record_is_cache(const struct value *file);
size_t patch_record_caches(const struct value *files);

/* What is no text of a patch for any reader of patches: title, summary, files. */
void patch_record_head(const struct patch_record *record, struct buf *out);
