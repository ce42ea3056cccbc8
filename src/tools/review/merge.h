/*
 * merge: three versions of a text become one, by `git merge-file`, which gets no
 * configuration, no repository and no names, only three open files. Without git nothing is
 * merged.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "files/overlay.h"
#include "tool/call.h"

#include <stdbool.h>
#include <stddef.h>

enum merge_outcome {
	MERGE_CLEAN,
	MERGE_CLASHES, /* both have changed the same lines; the text has marks there */
	MERGE_NO_GIT,
	MERGE_FAILED,
};

struct merged {
	struct buf text;
	/* the lines of OURS in the first of them, 1-based; 0: they are not known */
	size_t first, last;
};

/*
 * Merge what THEIRS has changed in BASE into OURS. THEIRS_NAME stands at the marks. MERGED is
 * filled; its text has been initialised by the caller, who frees it.
 */
enum merge_outcome merge_texts(struct call *call, struct str ours, struct str base,
			       struct str theirs, const char *theirs_name,
			       struct merged *merged);

/*
 * Run git with WORDS (NULL-ended) in FOLDER, without any configuration of the user or the
 * machine, and without hooks. FILES (ends with -1, or NULL) become 0, 3 and 4; the output is
 * appended to OUT, or dropped when it is NULL. Returns the exit code; -1: git could not be
 * started, or did not end by itself.
 */
int merge_git(struct call *call, const char *folder, const char *const *words,
	      const int *files, struct buf *out);
