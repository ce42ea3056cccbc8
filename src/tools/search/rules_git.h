/*
 * rules_git: what a repository and the settings of its user say about ignoring, as git in
 * this cell reads it: core.ignoreCase, core.excludesFile (or git/ignore among the user's
 * settings) and info/exclude, of a linked worktree in the repository it belongs to. The user
 * is the cell's: its home is the project's private one. Settings that others include are
 * not followed.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

struct files;

/* Git's own files are a few KiB; over this one is taken for something else and not read. */
enum { RULES_FILE_MAX = 1 << 20 };

/* Where the rules of a walk are. */
struct rules_place {
	struct files *files;
	const char *const *environment; /* of the cell, NULL-ended */
	struct buf root;                /* absolute: the root of all rules */
};

struct rules_git {
	bool ignores_case;
	struct buf user, exclude; /* texts, empty: there is no such file */
};

/* Of the repository that begins in FOLDER, relative to the root. rules_git_fini it. */
void rules_git_read(const struct rules_place *place, struct str folder,
		    struct rules_git *git);
void rules_git_fini(struct rules_git *git);
