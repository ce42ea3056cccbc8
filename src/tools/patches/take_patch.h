/*
 * take_patch: a patch as generate_patch has handed it over: its text, and the record of
 * its files with their hashes before and after the run. Both are read back from a
 * journal, which is not trusted: they must name the same files. Pure.
 *
 * The tool `take_patch` applies the patch by the functions of `apply_patch`; its call
 * is judged like a call of apply_patch and is a step of undo like one. `commit_patch`
 * finds the commit that the patch fits and gives it to `git fast-import`.
 */
#pragma once

#include "base/buf.h"
#include "base/hash.h"
#include "base/value.h"
#include "tool/tool.h"
#include "tools/patches/patch.h"

#include <stdbool.h>
#include <stddef.h>

/* One file of the patch. */
struct handed_file {
	const struct patch_file *file;
	const char *to; /* its name afterwards: the new name of a rename, else the same */
	bool existed, exists;
	/*
	 * hashes in lower-case hex; base: "" when the file did not exist, now: "" when it
	 * is removed
	 */
	char base[HASH_HEX + 1], now[HASH_HEX + 1];
	bool now_known; /* records of older programs do not have it */
};

struct handed {
	struct patch patch;        /* read and merged */
	struct handed_file *files; /* in the order of the patch */
	size_t count;
};

/*
 * Read the TEXT of a patch and FILES, the array of its records, into HANDED. False:
 * SENTENCE says why they are refused. Call handed_fini in either case.
 */
bool handed_read(struct str text, const struct value *files, struct handed *handed,
		 struct buf *sentence);
void handed_fini(struct handed *handed);

/* Rows of the parameter `files` of tools that take such a patch. */
extern const struct row handed_rows[];
