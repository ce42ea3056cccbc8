/*
 * blocked: tells which files that the policy blocks were opened while a call ran. Each of them is
 * an empty file in the view, so a program reads nothing, and gets no error by which it could say
 * so. A watch of inotify on each is all that this costs; a cell without blocked files has none.
 */
#pragma once

#include "tool/tool.h"
#include "view/spec.h"

/* Files that are watched; more of them are not told of. */
enum { BLOCKED_MAX = 16 };

struct blocked {
	int fd; /* -1: nothing is watched */
	const char *paths[BLOCKED_MAX];
	int watches[BLOCKED_MAX];
	size_t count;
};

/* Call this before a program of a call in the cell of SPEC (borrowed) begins. */
void blocked_begin(struct blocked *blocked, const struct cell_spec *spec);
/* Call this after the call: adds a denial to RESULT for each file that was opened. */
void blocked_end(struct blocked *blocked, struct tool_result *result);
