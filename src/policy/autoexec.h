/*
 * autoexec: the names in a project that a program outside runs by itself, or takes its settings
 * from: hooks and plugins of other agents, build files, editors, shells. This is the one table for
 * all that look at them: the scan, the view, the file tools, the audit and the texts.
 *
 * A protected name is what another agent executes without a question. No command changes one or
 * makes one. A reported name is anybody's to change; the result of a command lists it.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum autoexec_kind {
	AUTOEXEC_FILE = 1,
	AUTOEXEC_FOLDER, /* its files, and nothing below its folders */
	AUTOEXEC_TREE,   /* everything below it */
};

enum autoexec_care { AUTOEXEC_PROTECTED = 1, AUTOEXEC_REPORTED };

struct autoexec {
	/* in the folder where the program is started; that of a protected one has two parts at most */
	const char *name;
	const char *reader; /* the program, for sentences */
	enum autoexec_kind kind;
	enum autoexec_care care;
};

/* In order, part by part, so that the names in one folder stand together; ends with {0}. */
extern const struct autoexec autoexec_names[];

/* The rows whose first part is NAME: the first of them, and in COUNT how many. NULL: none. */
const struct autoexec *autoexec_of(const char *name, size_t *count);

/*
 * The protected row that PATH is, or lies below. PATH is relative to the folder ROOT, whose last
 * name counts as the first part of a row (ROOT may be a `.claude`). NULL: none.
 */
const struct autoexec *autoexec_protects(const char *root, const char *path);

/* The protected row by whose name the path PATH ends, wherever that is. NULL: none. */
const struct autoexec *autoexec_ends(const char *path);
