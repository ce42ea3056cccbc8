/*
 * run_folder: a folder in the person's state for the time of one run. Nobody else can open
 * it, and the run holds a lock on it. A folder without a lock is one that a killed run has
 * left: the next run gives it to its caller, who cleans up.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct buf;

/* PATH, open as AT and locked by us, was left by a run that was killed. */
typedef void run_folder_left(void *context, const char *path, int at);

/*
 * Make a folder in BELOW, of the state, whose name begins with BEGINNING. Before that LEFT
 * gets each folder of such a name that nobody holds. FOLDER gets the path, and *HELD is the
 * open folder, locked as long as it is open. The caller removes the folder at the end.
 */
bool run_folder_open(const char *below, const char *beginning, run_folder_left *left,
		     void *context, struct buf *folder, int *held, struct err *err);
