/*
 * patch: the text of a patch as a list of files with their changes. Two grammars are read by
 * one parser: that of Codex (`*** Begin Patch`) and the unified diff (git's, too). What can
 * be put right without a guess is: a code fence or a shell's `apply_patch <<'EOF'` around it
 * (wrapping.c), CRLF, wrong line counts in a hunk's head, lost blanks of empty lines.
 * Text that may be cut off is refused. Pure; hostile input.
 */
#pragma once

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "tools/edit.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * More files or hunks than this are no patch of one step. What generate_patch hands out is
 * below: it counts the files, and its bytes do not hold so many hunks.
 */
enum { PATCH_FILES_MAX = 1000, PATCH_HUNKS_MAX = 10000, PATCH_BYTES_MAX = 8 << 20 };

enum patch_kind { PATCH_UPDATE, PATCH_ADD, PATCH_DELETE };

/* One place to be changed: the lines OLD become the lines NEW. */
struct patch_hunk {
	size_t at;           /* its line in the patch, for sentences */
	struct str old, new; /* each line with its "\n", the last one maybe without */
	struct str kinds; /* of each line in order: ' ' in both, '-' in old, '+' in new */
	size_t line;      /* where it says that OLD begins, from 1; 0: it does not */
	/* Codex: lines that stand somewhere before it, one behind the other */
	struct str *anchors;
	size_t anchor_count;
	bool at_end;     /* Codex: OLD ends where the file ends */
	bool miscounted; /* the counts of its head were wrong */
};

struct patch_file {
	enum patch_kind kind;
	size_t at; /* its first line in the patch */
	const char *path;
	const char *to;    /* PATCH_UPDATE: where it goes, or NULL */
	const char *other; /* a second name that the patch has for it, or NULL */
	unsigned mode;     /* 0644 or 0755 as the patch says; 0: it does not */
	struct patch_hunk *hunks;
	size_t hunk_count;
};

struct patch {
	struct arena arena; /* holds everything below */
	struct patch_file *files;
	size_t file_count;
	bool codex; /* which grammar it was */
};

/*
 * Read TEXT into PATCH. False: SENTENCE says which line is wrong, why, and what would be
 * right. patch_fini in either case.
 */
bool patch_parse(struct str text, struct patch *patch, struct buf *sentence);
void patch_fini(struct patch *patch);
/*
 * Does PATCH delete a file that PATH needs out of its way: where a folder of it is to be, or in a
 * folder that has its name?
 */
bool patch_makes_room(const struct patch *patch, const char *path);
/* And is PATH, which it deletes, in the way of one that it makes? */
bool patch_needs_room(const struct patch *patch, const char *path);
/* Two sections of one file become one: both were written against the file as it is. */
void patch_merge(struct patch *patch);

#define PATCH_BEGIN "*** Begin Patch"

/* Used by patch_parse (patch.c, patch.c, wrapping.c). */
struct patch_reader {
	struct patch *patch;
	struct str *lines; /* without line ends */
	size_t count, at;
	size_t first; /* number of lines[0] in the text as it was given */
	size_t hunks;
	struct buf *sentence;
};

/*
 * Take away what stands around the patch: text before it, a code fence, a shell's
 * here-document or quotes. Lines that a shell would run besides are refused with the
 * sentence: this tool runs none.
 */
bool patch_unwrap(struct patch_reader *reader);
/* Does a patch begin with LINE, or at line I? */
bool patch_starts_codex(struct str line);
bool patch_starts_unified(const struct patch_reader *reader, size_t i);

/* "Line N of the patch: " and the sentence. False. N is the index of a line. */
bool patch_refuse(struct patch_reader *reader, size_t index, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * The hunks of one file applied to its text. Pure. Each hunk must have one place, found
 * as edit_file finds its texts (edit.h), in whole lines; where it has several, its line
 * number, the lines named before it, the end of the file or the hunk before it must
 * leave one. All or nothing.
 */

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
