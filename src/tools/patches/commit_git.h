/*
 * commit_git: git as commit_patch asks it: programs of the cell, without hooks, without the
 * network, and without anything of the configuration that would start another one. Each
 * answer is a file in memory, and foreign.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "tool/call.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	COMMIT_OBJECT_HEX = 64, /* digits of an object's name, at most */
};

/*
 * Run git with WORDS (NULL-ended) and, behind "--", PATHS (NULL-ended, or NULL), in the folder
 * of the workspace; INPUT is its standard input, -1: none. What it printed is the file *PRINTED
 * (the caller's), or lost when that is NULL. False: it could not be started, or failed, and ERR
 * has its own words; ERR.code is ENOENT when there is no git, EIO else.
 */
bool commit_git(struct call *call, const char *const *words, const char *const *paths,
		int input, int *printed, struct err *err);

/* The same for an answer of one line, which LINE (initialised) becomes. */
bool commit_git_line(struct call *call, const char *const *words, struct buf *line,
		     struct err *err);

/* Is TEXT the name of an object: 40 or 64 lower-case hexadecimal digits? */
bool commit_is_object(struct str text);

/*
 * One object of what `cat-file --batch` printed into the file PRINTED, at *AT, which moves
 * behind it. *CONTENT (initialised with its ceiling) becomes its content; *FOUND: it is a blob
 * and was there. False: that is no such answer, or it is too large.
 */
bool commit_next_blob(int printed, uint64_t *at, struct buf *content, bool *found,
		      struct err *err);
