/*
 * git_text: the one-line files and the work lists of a git folder: pointers (`.git` of a
 * linked worktree or submodule, `gitdir` and `commondir` of a worktree's folder) and what an
 * interrupted rebase will do when it goes on. Foreign bytes.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/* Git writes less; more is no such file. */
enum { GIT_POINTER_MAX = 8 << 10, GIT_TODO_MAX = 4 << 20 };

/* The path behind "gitdir:" of a `.git` file, as written. False when it is none. */
bool git_text_pointer(struct str text, struct str *path);

/* The one path that a `gitdir` or `commondir` file holds. */
bool git_text_line(struct str text, struct str *path);

/*
 * Does going on with this work list (git-rebase-todo, sequencer/todo) do nothing but git's
 * own work on commits? A command that is not known here counts as one that executes.
 */
bool git_text_todo_is_inert(struct str text);

/* A merge strategy that is git's own, and not a program `git-merge-NAME`. */
bool git_text_strategy_is_own(struct str text);

/* The options that `git am` hands on to `git apply` (rebase-apply/apply-opt): none that names a file? */
bool git_text_apply_is_inert(struct str text);

/*
 * The path of the next conflict in TEXT, a MERGE_RR, which goes on behind it; an empty one when it is
 * not as git writes it. False at the end.
 */
bool git_text_next_conflict(struct str *text, struct str *path);

/* Only blank lines and comments? */
bool git_text_is_empty(struct str text);
