/*
 * patch: the text of a patch as a list of files with their changes. One parser reads two
 * grammars: that of Codex (`*** Begin Patch`) and the unified diff (git's, too). The
 * parser corrects all errors that need no guess: a code fence or a shell's `apply_patch
 * <<'EOF'` around the patch, CRLF, wrong line counts in a hunk's head, lost blanks of
 * empty lines. A text that may be cut off is refused. Pure; the input is hostile.
 */
#pragma once

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "tools/edit.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * A patch of one step never has more files or hunks than this. A patch of generate_patch
 * stays below: that tool counts the files, and its bytes cannot hold so many hunks.
 */
enum { PATCH_FILES_MAX = 1000, PATCH_HUNKS_MAX = 10000, PATCH_BYTES_MAX = 8 << 20 };

enum patch_kind { PATCH_UPDATE, PATCH_ADD, PATCH_DELETE };

/* One change: the lines OLD become the lines NEW. */
struct patch_hunk {
	size_t at;           /* its line in the patch, for sentences */
	struct str old, new; /* each line with its "\n", the last one maybe without */
	struct str kinds; /* of each line in order: ' ' in both, '-' in old, '+' in new */
	/* where OLD begins by its head, from 1; 0: the head does not say */
	size_t line;
	/* Codex: lines that stand somewhere before OLD, one behind the other */
	struct str *anchors;
	size_t anchor_count;
	bool at_end;     /* Codex: OLD ends where the file ends */
	bool miscounted; /* the counts of its head were wrong */
};

struct patch_file {
	enum patch_kind kind;
	size_t at; /* its first line in the patch */
	const char *path;
	const char *to;    /* PATCH_UPDATE: the new name, or NULL */
	const char *other; /* a second name for the file in the patch, or NULL */
	unsigned mode;     /* 0644 or 0755 as in the patch; 0: the patch does not say */
	struct patch_hunk *hunks;
	size_t hunk_count;
};

struct patch {
	struct arena arena; /* holds everything below */
	struct patch_file *files;
	size_t file_count;
	bool codex; /* the grammar is that of Codex */
};

/*
 * Read TEXT into PATCH. False: SENTENCE says which line is wrong, why, and what would be
 * right. Call patch_fini in either case.
 */
bool patch_parse(struct str text, struct patch *patch, struct buf *sentence);
void patch_fini(struct patch *patch);
/*
 * Does PATCH delete a file that is in the way of PATH, because a folder of PATH needs its
 * place, or because PATH needs the place of its folder?
 */
bool patch_makes_room(const struct patch *patch, const char *path);
/* Is PATH, which PATCH deletes, in the way of a file that PATCH makes? */
bool patch_needs_room(const struct patch *patch, const char *path);
/*
 * Make one section of two sections about the same file: both were written against the
 * file as it is.
 */
void patch_merge(struct patch *patch);

/*
 * Applies the hunks of one file to its text. Pure. Each hunk must have one place, found
 * as edit_file finds its texts (edit.h), in whole lines. Where a hunk fits at several
 * places, its line number, the lines named before it, the end of the file or the hunk
 * before it must leave only one. All hunks are applied, or none.
 */

/* The result of one hunk. */
struct patch_outcome {
	enum match_level level;
	size_t line; /* in the old text */
	/* the line that the patch names; 0: it names none, or the right one */
	size_t said;
	bool already;           /* its new lines were there before */
	bool miscounted;        /* the counts of its head were wrong */
	enum shown_end end_set; /* its new lines got the file's line ends */
};

/*
 * OUT becomes TEXT with the hunks of FILE (an update). SHOWN names it in sentences.
 * HOW: flags as in edit.h. OUTCOMES: one for each hunk. False: SENTENCE says what is wrong.
 */
bool patch_apply(const char *shown, const struct patch_file *file, struct str text,
		 unsigned how, struct buf *out, struct patch_outcome *outcomes,
		 struct buf *sentence);

/*
 * Append PATH in the form for a record of JSON: unchanged or, when it is no UTF-8, in
 * quotes as in the patch. True: it is in quotes.
 */
bool patch_add_path(const char *path, struct buf *out);
