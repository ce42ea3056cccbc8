/*
 * patch_apply: the hunks of one file applied to its text. Pure. Each hunk must have one
 * place, found as edit_file finds its texts (match.h), in whole lines; where it has several,
 * its line number, the lines named before it, the end of the file or the hunk before it must
 * leave one. All or nothing.
 */
#pragma once
#include "base/buf.h"
#include "tools/edit.h"
#include "tools/patches/patch.h"

/* The result of one hunk. */
struct patch_outcome {
	enum match_level level;
	size_t line;  /* in the old text */
	size_t said;  /* where the patch says it is; 0: it does not, or that is right */
	bool already; /* its new lines stood there before */
	bool miscounted;        /* the counts of its head were wrong */
	enum shown_end end_set; /* its new lines were given the file's line ends */
};

/*
 * OUT becomes TEXT with the hunks of FILE (an update). SHOWN names it in sentences.
 * HOW: flags as in edit.h. OUTCOMES: one for each hunk. False: SENTENCE says what is wrong.
 */
bool patch_apply(const char *shown, const struct patch_file *file, struct str text,
		 unsigned how, struct buf *out, struct patch_outcome *outcomes,
		 struct buf *sentence);
