/*
 * undo_told: the result of undoing one or more steps, for people and for programs: how
 * many files were restored or removed, their names, and the files that were left
 * unchanged.
 */
#pragma once
#include "base/buf.h"
#include "base/value.h"

#include <stdint.h>

struct undo_told {
	int64_t restored, removed, already;
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
