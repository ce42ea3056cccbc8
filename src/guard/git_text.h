/*
 * git_text: reads the one-line files and the work lists of a git folder: pointers (`.git`
 * of a linked worktree or submodule, `gitdir` and `commondir` of a worktree's folder) and
 * the remaining work of an interrupted rebase. The bytes are not trusted.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/* Git writes less; a larger file is not accepted. */
enum { GIT_POINTER_MAX = 8 << 10, GIT_TODO_MAX = 4 << 20 };

/*
 * The path behind "gitdir:" of a `.git` file, as written. False when TEXT is no such
 * file.
 */
bool git_text_pointer(struct str text, struct str *path);

/* The only path in a `gitdir` or `commondir` file. */
bool git_text_line(struct str text, struct str *path);

/*
 * Does continuing the work list TEXT (git-rebase-todo, sequencer/todo) only do git's own
 * work on commits? An unknown command counts as executing a program.
 */
bool git_text_todo_is_inert(struct str text);

/* Is TEXT a merge strategy of git itself, not a program `git-merge-NAME`? */
bool git_text_strategy_is_own(struct str text);

/*
 * Are the options that `git am` passes to `git apply` (rebase-apply/apply-opt) free of
 * file names?
 */
bool git_text_apply_is_inert(struct str text);

/*
 * Set PATH to the path of the next conflict in TEXT, a MERGE_RR, and TEXT to the rest.
 * PATH is empty when git does not write conflicts in this form. False at the end.
 */
bool git_text_next_conflict(struct str *text, struct str *path);

/* Has TEXT only blank lines and comments? */
bool git_text_is_empty(struct str text);
