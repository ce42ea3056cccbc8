/*
 * saving: writes what the upper folders of a layer hold into a file (saved.h), and builds them
 * again from it. Names, depth and contents of the folders are foreign, and so is what stands in the
 * file. A process of its own does it, which has that folder, that file and nothing else
 * (outside_run). The caller waits for it.
 *
 * Both functions return 0 or a number of errno.h: SAVED_OVER when there are over MOST bytes of
 * contents and attributes, E2BIG when there are more folders in each other or more names than a file takes,
 * EACCES when the caller's user may not read something.
 */
#pragma once

#include "view/saved.h"

#include <stdint.h>

/*
 * Write the upper folders of the trees WHICH (bit N for the tree N) in the folder TREES, in which
 * nobody works, to the file FILE, which is open for writing and empty. Nothing in TREES is changed.
 */
int saving_store(int trees, uint64_t which, int file, uint64_t most);

/*
 * Build the trees WHICH of FILE in the empty folder TREES, as they were. After a failure some of
 * them may be there, and not as they were. SAVED_UNSOUND: the file is damaged, or holds other
 * trees.
 */
int saving_build(int trees, uint64_t which, int file, uint64_t most);
