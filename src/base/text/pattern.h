/*
 * pattern: file name patterns. Two dialects, one matcher:
 *   glob       *  ?  [a-z] [!x]  {a,b}  and ** for any depth
 *   gitignore  the same without braces (gitignore(5); wildmatch with WM_PATHNAME)
 * The time of a match is bounded: no pattern makes it exponential.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

struct ignore;
struct pattern_set;

enum pattern_flags {
	PATTERN_BRACES = 1,
	/* a pattern without a slash matches the last name at any depth */
	PATTERN_BASENAME = 2,
	PATTERN_IGNORE_CASE = 4,
};

/* Longest pattern accepted, and most alternatives to which its braces may expand. */
enum { PATTERN_MAX = 4096, PATTERN_ALTERNATIVES_MAX = 1024 };

/*
 * Is PATTERN well-formed (brackets and braces closed, within the limits)? ERR says why
 * not.
 */
bool pattern_check(struct str pattern, unsigned flags, struct err *err);

/* Does PATTERN match the whole PATH (components separated by '/', no leading slash)? */
bool pattern_match(struct str pattern, struct str path, unsigned flags);
struct pattern_set *pattern_set_new(struct str pattern, unsigned flags);
void pattern_set_free(struct pattern_set *set);
/* NULL matches nothing. */
bool pattern_set_match(const struct pattern_set *set, struct str path);
/*
 * A text that every path holds which SET matches, for a search before the match; empty:
 * none is known. It lives as long as SET.
 */
struct str pattern_set_text(const struct pattern_set *set);

/* Does TEXT contain a character that makes it a pattern? */
bool pattern_is_one(struct str text);

/*
 * Gitignore files (gitignore(5)). The answers equal those of git for untracked files.
 * There is one struct for each ignore file, and the structs form a chain from the
 * deepest folder to the root. The deepest file with a matching rule decides, by its
 * last matching rule.
 */

enum ignore_answer { IGNORE_SILENT, IGNORE_YES, IGNORE_NO /* a "!" rule */ };

/*
 * Parse TEXT, an ignore file in FOLDER (relative to the root of the walk, "" for the
 * root itself). PARENT is asked after it; the caller owns PARENT, which must live as
 * long. Bad lines are skipped as in git. FLAGS: 0, or PATTERN_IGNORE_CASE when git's
 * core.ignoreCase is true.
 */
struct ignore *ignore_new(struct str text, struct str folder, const struct ignore *parent,
			  unsigned flags);
void ignore_free(struct ignore *ignore);

/* PATH is relative to the root of the walk. IGNORE NULL: IGNORE_SILENT. */
enum ignore_answer ignore_decide(const struct ignore *ignore, struct str path,
				 bool is_directory);
