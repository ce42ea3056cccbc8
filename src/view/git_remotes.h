/*
 * git_remotes: the addresses of the remotes of a workspace's repository, as its configuration
 * says them. The front reads them before a cell runs, and no command of a cell can change
 * the configuration of a repository that is there (protected.c).
 *
 * Only the file `config` counts: what it includes, the person's own configuration, the
 * remotes of submodules and of repositories further down do not. An address is changed by
 * the `url.*.insteadOf` and `pushInsteadOf` of the same file, as git does it. The bytes are
 * not trusted: a file that is no regular one, or over GIT_CONFIG_MAX, has no remotes.
 */
#pragma once

#include "base/memory.h"

enum {
	GIT_REMOTES_MAX = 256, /* addresses; further ones do not count */
};

/*
 * The addresses of the remotes of WORKSPACE, a real path, in the order of the file;
 * NULL-ended. They belong to ARENA.
 */
const char **git_remotes_read(const char *workspace, struct arena *arena);
