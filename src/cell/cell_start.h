/* cell_start: how an anchor comes into being and goes. For cell.c only. */
#pragma once
#include "base/err.h"
#include "tool/tool.h"
#include "view/spec.h"

#include <stdbool.h>

struct cell_start {
	struct cell_spec *spec;
	const char *program; /* NULL: this very program */
	bool direct;         /* clone it out of this process, without an exec */
	const struct tool *const *tools;
	/* filled: the program that clones the anchor and goes, for cell_start_end; or -1 */
	int starter;
};

/*
 * *CONTROL: the socket to the anchor. *PIDFD: the anchor, or -1 while it is still on
 * its way (ANCHOR_STARTED brings it).
 */
bool cell_start(struct cell_start *start, int *control, int *pidfd, struct err *err);
/* Wait for the end of the starter, which is near. */
void cell_start_end(struct cell_start *start);

/*
 * An anchor without a pid namespace ends what is in the cell itself when its control
 * socket has been closed: wait for that, not for ever.
 */
void cell_wait_anchor(int pidfd);
