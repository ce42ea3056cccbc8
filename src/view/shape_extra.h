/*
 * shape_extra: a folder that a person lets a cell have besides its policy's, while it runs
 * (approval.h). It is held by its inode from the question on, and shown as what it was then.
 */
#pragma once
#include "base/err.h"
#include "view/spec.h"

#include <stdbool.h>

struct shape_extra {
	const char *path; /* real, absolute */
	int fd;           /* holds it, O_PATH */
	bool writable;
};

/*
 * May a person be asked at all to let the cell of CELL have EXTRA? ERR says why not: a folder that
 * no entry of the policy could name, a home, somebody else's home, the caller's secrets and our own
 * settings, what is blocked, a folder with a socket in it, what lies over or below what the cell
 * has of its own; to be written, what is git's and the system's folders; a cell without a view.
 */
bool shape_judge_extra(const struct cell_spec *cell, const struct shape_extra *extra,
		       struct err *err);

/*
 * What the COUNT EXTRAS add to the cell of CELL, as ADDITION (initialised): their trees, detached
 * (ESTALE when another has taken the place of one), read-only what git would run or follow, the
 * guard of both. CELL is left as it is.
 */
bool shape_extra(const struct cell_spec *cell, const struct shape_extra *extras,
		 size_t count, struct cell_spec *addition, struct err *err);
