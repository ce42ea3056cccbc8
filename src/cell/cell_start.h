/* cell_start: starts an anchor and waits for its end. For cell.c only. */
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
	/*
	 * set by cell_start: the program that clones the anchor and exits, for
	 * cell_start_end; or -1
	 */
	int starter;
};

/*
 * *CONTROL: the socket to the anchor. *PIDFD: the anchor, or -1 while it is still on
 * its way (ANCHOR_STARTED brings it).
 */
bool cell_start(struct cell_start *start, int *control, int *pidfd, struct err *err);
/* Wait until the starter has ended, which happens soon. */
void cell_start_end(struct cell_start *start);

/*
 * An anchor without a pid namespace ends the processes of the cell itself after its
 * control socket was closed. Wait for that, but not for ever.
 */
void cell_wait_anchor(int pidfd);
