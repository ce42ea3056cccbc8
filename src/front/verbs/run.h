/*
 * run: helpers that several verbs share: small trees of files that the front makes in a
 * temporary folder of its own (and removes with fd_folder_remove), and the search for a
 * program.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * Write DATA to a new file NAME, relative to FOLDER_FD. Its parent folders are made. The
 * file must not exist.
 */
bool run_write_tree(int folder_fd, const char *name, struct str data, mode_t mode,
		    struct err *err);

/* Finds the place of a program, for texts only; the path is not used to run it. */

/*
 * Look NAME up in FOLDERS, which colons separate (NULL: no folders); FOUND gets the path.
 */
bool run_find_program(const char *folders, const char *name, struct buf *found);
