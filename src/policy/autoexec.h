/*
 * autoexec: the names in a project that a program outside runs by itself, or from which
 * it takes its settings: hooks and plugins of other agents, build files, editors,
 * shells. All code that deals with such names uses this one table: the scan, the view,
 * the file tools, the audit and the texts.
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
