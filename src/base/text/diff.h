/*
 * diff: differences of two texts by lines (Myers, linear space), as a unified
 * diff that `patch` and `git apply` take: "\ No newline at end of file" included.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

struct diff_counts {
	size_t added, removed; /* lines */
};

enum { DIFF_CONTEXT = 3 };

/*
 * Append the hunks, with CONTEXT lines around; nothing when the texts are equal. A head
 * of ---/+++ with OLD_NAME and NEW_NAME comes first; one NULL there gives /dev/null
 * (created or removed), two NULLs leave out the head. COUNTS may be NULL. False at the
 * ceiling of OUT. Time is bounded: beyond an effort limit the differing middle is one
 * replacement.
 */
bool diff_unified(struct str old_text, struct str new_text, const char *old_name,
		  const char *new_name, size_t context, struct buf *out,
		  struct diff_counts *counts);

/*
 * A name as git writes it in a patch: in quotes with escapes where it needs them, as one that
 * is no UTF-8 does.
 */
bool diff_add_quoted(const char *prefix, const char *name, struct buf *out);

void diff_count(struct str old_text, struct str new_text, struct diff_counts *counts);
