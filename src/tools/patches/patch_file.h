/*
 * patch_file: one file's part of a patch, as git writes it (names in quotes where they need
 * it, modes, renames, files made and removed), and the proof that our own reader makes of it
 * what it should. Pure.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"
#include "base/text/diff.h"

#include <stdbool.h>

struct patch_file_change {
	const char *path;
	const char *from; /* it was renamed, with the same content; NULL: not */
	bool existed, exists;
	bool was_executable, is_executable;
	struct str base, now; /* both empty where the content is the same */
};

/*
 * Append PATH as a record of JSON holds it: as it is, or, when it is no UTF-8, in quotes as the
 * patch has it. True: it is in quotes.
 */
bool patch_add_path(const char *path, struct buf *out);
/*
 * Append words that stand before a patch: what a reader of patches would take for the beginning
 * of one gets a blank before it. Ends with a line end unless WORDS is empty.
 */
void patch_add_words(struct str words, struct buf *out);

/* Append it to OUT. False: OUT has no room. */
bool patch_file_print(const struct patch_file_change *change, struct buf *out,
		      struct diff_counts *counts);
/* Is SECTION read as this very change, and does it make NOW of BASE? */
bool patch_file_applies(const struct patch_file_change *change, struct str section);
