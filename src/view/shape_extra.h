/*
 * shape_extra: a folder that a person grants to a running cell besides those of its
 * policy (approval.h). It is held open from the question on, so the cell gets the folder
 * that the person was asked about.
 */
#pragma once
#include "base/err.h"
#include "view/spec.h"

#include <stdbool.h>

struct shape_extra {
	const char *path; /* real, absolute */
	int fd;           /* keeps the folder open, O_PATH */
	bool writable;
};

/*
 * May a person be asked to grant EXTRA to the cell of CELL? If not, ERR says why. Refused
 * are: a folder that no entry of the policy could name, a home, somebody else's home, the
 * caller's secrets, our own settings, blocked paths, a folder with a socket in it, and
 * folders above or below the cell's own. For writing, git's own folders and those of the
 * system are refused too. A cell without a view gets nothing.
 */
bool shape_judge_extra(const struct cell_spec *cell, const struct shape_extra *extra,
		       struct err *err);

/*
 * Put into ADDITION (initialised) what the COUNT EXTRAS add to the cell of CELL: their
 * trees, detached (ESTALE when another folder is at one of their paths now), read-only
 * binds of the files that git would run or follow, and a guard for CELL and EXTRAS
 * together. CELL is not changed.
 */
bool shape_extra(const struct cell_spec *cell, const struct shape_extra *extras,
		 size_t count, struct cell_spec *addition, struct err *err);
