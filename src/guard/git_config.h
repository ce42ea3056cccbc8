/*
 * git_config: what in a git configuration executes a program or leads git elsewhere
 * (git-config(1), "Syntax"). A key is inert only when it is on the list here; whatever is
 * unknown, or not understood at all, is not. Foreign bytes: never trusted, always bounded.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/* A configuration over this is not read and counts as not inert. */
enum { GIT_CONFIG_MAX = 1 << 20 };

struct git_config {
	struct buf active; /* a line "section.sub.key=value" for each key that is not inert */
	bool sha256;       /* extensions.objectFormat */
	bool of_worktrees; /* extensions.worktreeConfig: there is a config.worktree too */
	/* core.ignoreCase and core.excludesFile, when they are there (the last one holds) */
	bool has_ignore_case, ignore_case;
	bool has_excludes_file;
	struct buf excludes_file; /* as written */
};

void git_config_init(struct git_config *config);
void git_config_fini(struct git_config *config);

/*
 * Append to PATH, in normal form, the file that LINE (of `active`) includes in a configuration of
 * FOLDER; a condition counts as met. HOME: what "~/" stands for, or NULL. False: it includes none.
 */
bool git_config_included(struct str line, const char *folder, const char *home,
			 struct buf *path);

/* Read TEXT into CONFIG (initialised). Lines that are no configuration are active ones. */
void git_config_read(struct str text, struct git_config *config);
