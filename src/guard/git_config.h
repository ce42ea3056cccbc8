/*
 * git_config: finds the keys of a git configuration that execute a program or lead git
 * elsewhere (git-config(1), "Syntax"). A key is inert only when it is on the list in
 * git_config.c; unknown keys and lines that are not understood are active. The bytes are
 * not trusted, and their size is bounded.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/* A larger configuration is not read and counts as active. */
enum { GIT_CONFIG_MAX = 1 << 20 };

struct git_config {
	struct buf active; /* a line "section.sub.key=value" for each key that is not inert */
	bool sha256;       /* extensions.objectFormat */
	bool of_worktrees; /* extensions.worktreeConfig: there is a config.worktree too */
	/*
	 * core.ignoreCase and core.excludesFile, when they are set (the last value
	 * counts)
	 */
	bool has_ignore_case, ignore_case;
	bool has_excludes_file;
	struct buf excludes_file; /* as it is written in the file */
};

void git_config_init(struct git_config *config);
void git_config_fini(struct git_config *config);

/*
 * Append to PATH, in normal form, the file that LINE (of `active`) includes in a
 * configuration of FOLDER; a condition counts as met. HOME replaces "~" in "~/"; or NULL.
 * False: LINE includes no file.
 */
bool git_config_included(struct str line, const char *folder, const char *home,
			 struct buf *path);

/* Read TEXT into CONFIG (initialised). Lines with wrong syntax count as active. */
void git_config_read(struct str text, struct git_config *config);
