/*
 * autoexec: the names in a project that a program outside runs by itself, or from which
 * it takes its settings: hooks and plugins of other agents, build files, editors,
 * shells, and the files of git. All code that deals with such names uses the two tables
 * here: the scan, the view, the file tools, the audit and the texts.
 *
 * A protected name is one that another agent executes without a question. No command
 * may change or create one. Any command may change a reported name; the result of the
 * command lists it.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum autoexec_kind {
	AUTOEXEC_FILE = 1,
	AUTOEXEC_FOLDER, /* the files in it, without its subfolders */
	AUTOEXEC_TREE,   /* everything below it */
};

enum autoexec_care {
	AUTOEXEC_PROTECTED = 1,
	AUTOEXEC_REPORTED,
	AUTOEXEC_READ, /* reported: a text that agents follow, or a folder of such texts */
};

struct autoexec {
	/*
	 * relative to the folder where the program is started; a protected name has at
	 * most two parts
	 */
	const char *name;
	const char *reader; /* the program that reads it, for sentences */
	enum autoexec_kind kind;
	enum autoexec_care care;
};

/*
 * The names in a git folder from which git takes what it runs, or finds a part of itself. The
 * view holds them as they are, the scan looks at them, and a sentence says that no command
 * changes them. `info` is not one of them, because gc and repack write info/refs; nor is
 * `worktrees`, because git adds and removes worktrees: the scan looks at each of them.
 */
enum autoexec_git {
	AUTOEXEC_GIT_HOOKS,
	AUTOEXEC_GIT_CONFIG,
	AUTOEXEC_GIT_CONFIG_WORKTREE,
	AUTOEXEC_GIT_MODULES,
	AUTOEXEC_GIT_ATTRIBUTES,
	AUTOEXEC_GIT_EXCLUDE,
	AUTOEXEC_GIT_COMMONDIR, /* of a worktree's part only */
	AUTOEXEC_GIT_COUNT,
};

/* Relative to the git folder. */
extern const char *const autoexec_git_names[AUTOEXEC_GIT_COUNT];

/* Sorted part by part, so that the names in one folder stand together; ends with {0}. */
extern const struct autoexec autoexec_names[];

/*
 * The first row whose first part is NAME, and in *COUNT the number of such rows. NULL:
 * none.
 */
const struct autoexec *autoexec_of(const char *name, size_t *count);

/*
 * The protected row for PATH or a folder above it. PATH is relative to the folder ROOT,
 * whose last name counts as the first part of a row (ROOT may be a `.claude`). NULL:
 * none.
 */
const struct autoexec *autoexec_protects(const char *root, const char *path);

/* The protected row whose name ends PATH, in any folder. NULL: none. */
const struct autoexec *autoexec_ends(const char *path);

/*
 * The row for PATH or a folder above it, be the program started in the root of PATH or in
 * any folder on the way. NULL: there is none.
 */
const struct autoexec *autoexec_find(const char *path);
