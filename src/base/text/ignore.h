/*
 * ignore: gitignore files (gitignore(5)), with answers equal to git's own for untracked
 * files. One struct per ignore file, chained from the deepest folder to the root: the
 * deepest file with a matching rule decides, within a file the last rule.
 */
#pragma once
#include "base/str.h"

#include <stdbool.h>

struct ignore;

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
