/*
 * undo_told: what undoing has done so far, of one step or several, for people and for programs:
 * how many files, which, and what was left alone.
 */
#pragma once
#include "base/buf.h"
#include "base/value.h"

#include <stdint.h>

struct undo_told {
	int64_t restored, removed, already;
	struct value *files; /* path, as it may be shown -> "restored" or "removed" */
	struct value *left;  /* what was left alone, with the reason */
};

void undo_told_init(struct undo_told *told);
void undo_told_fini(struct undo_told *told);

/*
 * What the DETAILS of the tool restore say, or those that undo_told_details has made. A file that
 * is named in several counts once, as the last of them has it.
 */
void undo_told_add(struct undo_told *told, const struct value *details);
/* The first of them, each on a line; git's own are only counted. */
void undo_told_print_files(const struct undo_told *told, struct buf *text);
/* "3 files restored, 1 removed"; "0 files restored" for nothing. */
void undo_told_print_counts(const struct undo_told *told, struct buf *text);
void undo_told_print_left(const struct undo_told *told, struct buf *text);
/* All of it as members of DETAILS. */
void undo_told_details(const struct undo_told *told, struct value *details);
