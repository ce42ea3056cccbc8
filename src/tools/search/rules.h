/*
 * rules: the ignore files that hold in a folder of a walk, shared between its folders and
 * counted. What counts is git's own: .gitignore of the folder and those above it, info/exclude
 * of its repository and the file that core.excludesFile names (rules_git.h). Ignore files hold
 * with or without a repository around them; a nested repository starts anew. Not read: git's
 * index (a tracked file that a rule names is ignored here).
 */
#pragma once
#include "base/str.h"

#include <stdbool.h>

struct rules;
struct rules_place;

/* NULL is "no rules" in each of these. */
struct rules *rules_ref(struct rules *rules);
void rules_unref(struct rules *rules);

/* The signs of rules that a folder is known to hold before its rules are read. */
struct rules_signs {
	bool git;       /* an entry .git: a repository of its own */
	bool gitignore; /* maybe a .gitignore */
};

/*
 * The rules inside the folder FOLDER_FD, named FOLDER relative to the root of all rules
 * ("" for the root), where PARENT holds around it. The caller gets a reference.
 */
struct rules *rules_enter(struct rules *parent, const struct rules_place *place,
			  int folder_fd, struct str folder, struct rules_signs signs);
/* The same, looking for the signs itself. */
struct rules *rules_enter_unseen(struct rules *parent, const struct rules_place *place,
				 int folder_fd, struct str folder);

/* PATH is relative to the root of all rules. */
bool rules_ignore(const struct rules *rules, struct str path, bool is_folder);
