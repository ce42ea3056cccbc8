/*
 * pattern: file name patterns. Two dialects, one matcher:
 *   glob       *  ?  [a-z] [!x]  {a,b}  and ** for any depth
 *   gitignore  the same without braces (gitignore(5); wildmatch with WM_PATHNAME)
 * Matching is bounded: no exponential blow-up on any pattern.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

struct ignore;
struct pattern_set;

enum pattern_flags {
	PATTERN_BRACES = 1,
	PATTERN_BASENAME = 2, /* a pattern without a slash matches the last name at any depth */
	PATTERN_IGNORE_CASE = 4,
};

/* Longest pattern taken, and most alternatives its braces may expand to. */
enum { PATTERN_MAX = 4096, PATTERN_ALTERNATIVES_MAX = 1024 };

/*
 * Is PATTERN well-formed (brackets and braces closed, in the limits)? ERR says why not.
 */
bool pattern_check(struct str pattern, unsigned flags, struct err *err);

/* Does PATTERN match the whole of PATH (components separated by '/', none leading)? */
bool pattern_match(struct str pattern, struct str path, unsigned flags);
struct pattern_set *pattern_set_new(struct str pattern, unsigned flags);
void pattern_set_free(struct pattern_set *set);
/* NULL fits nothing. */
bool pattern_set_match(const struct pattern_set *set, struct str path);

/* Does TEXT hold a character that makes it a pattern? */
bool pattern_is_one(struct str text);

/*
 * Gitignore files (gitignore(5)), with answers equal to git's own for untracked files.
 * One struct per ignore file, chained from the deepest folder to the root: the deepest
 * file with a matching rule decides, within a file the last rule.
 */

enum ignore_answer { IGNORE_SILENT, IGNORE_YES, IGNORE_NO /* a "!" rule */ };

/*
 * Parse the text of one ignore file that lies in folder FOLDER (path relative to the
 * walk's root, "" for the root itself). PARENT is consulted after it and stays the
 * caller's; it must live as long. Bad lines are skipped as git does. FLAGS: 0, or
 * PATTERN_IGNORE_CASE where git's core.ignoreCase is true.
 */
struct ignore *ignore_new(struct str text, struct str folder, const struct ignore *parent,
			  unsigned flags);
void ignore_free(struct ignore *ignore);

/* PATH is relative to the walk's root. NULL IGNORE is silent. */
enum ignore_answer ignore_decide(const struct ignore *ignore, struct str path,
				 bool is_directory);
