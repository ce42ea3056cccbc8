/*
 * diff: differences of two texts by lines (Myers, linear space), as a unified diff that
 * `patch` and `git apply` accept, including "\ No newline at end of file".
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
 * of ---/+++ with OLD_NAME and NEW_NAME comes first. If one name is NULL, it becomes
 * /dev/null (created or removed); if both are NULL, there is no head. COUNTS may be
 * NULL. False when OUT is full. The time is bounded: beyond an effort limit the rest of
 * the differences becomes one replacement.
 */
bool diff_unified(struct str old_text, struct str new_text, const char *old_name,
		  const char *new_name, size_t context, struct buf *out,
		  struct diff_counts *counts);

/*
 * Append a name as git writes it in a patch. A name that needs it, for example one that
 * is no UTF-8, gets quotes and escapes.
 */
bool diff_add_quoted(const char *prefix, const char *name, struct buf *out);

void diff_count(struct str old_text, struct str new_text, struct diff_counts *counts);
