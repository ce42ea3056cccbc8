/*
 * removal: removes what a cell has left in a folder of ours. Names, depth and rights of all of
 * it are foreign. A process of its own does it, which can list and remove the names below that
 * folder, and nothing else (outside_run). The caller waits for it.
 */
#pragma once

/*
 * Remove all that is in the open folder AT, but not AT itself. Returns 0 or a number of errno.h:
 * some of it is still there.
 */
int removal_empty(int at);
/*
 * Remove RELATIVE, a path of one name or more, with all that it holds, below the open folder AT.
 * A folder first moves to AT under a name of its own, so that a killed process leaves it whole
 * or gone; what one has left there goes with the next. Nothing is opened through a link. Returns 0
 * or a number of errno.h. ENOENT: there is no such name. ENOTSUP: a folder on the way hides the
 * folder below it (files/overlay.h), so that a name that was removed from the layer would be
 * gone in the workspace as well. Another one: some of it is still there.
 */
int removal_run(int at, const char *relative);
