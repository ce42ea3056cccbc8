/*
 * copy: copies a writable tree for a review (view/review.h), where the kernel lays no layer over
 * the tree. The copy is VIEW_LAYER_UPPER in the folder of the layer's tree, and its list
 * (files/copied.h) lies beside it. Blocks are shared where the file system can do that; other
 * copies have a ceiling. Permissions, times, attributes, holes, links and names of one file are
 * kept, and root keeps owners. Pipes, sockets and devices are left out, and so are set-id bits
 * of files. A file or folder that this user may not read is there, empty and closed.
 *
 * A process that can read the tree and write the copy, and nothing else, does it
 * (OUTSIDE_COPIES). The caller waits for it.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum {
	/* files of a copy that shares no blocks */
	COPY_FILES_MAX = 20000,
};
#define COPY_BYTES_MAX ((uint64_t)1 << 30)

/* The contents of a copy, or of one that would be made. */
struct copy_size {
	uint64_t files; /* folders are not counted */
	uint64_t bytes;
};

/* The parts that are not copied; all of it is borrowed. */
struct copy_except {
	const char *top;           /* the real path of the tree */
	const char *const *closed; /* real paths, which are empty and closed; NULL-ended */
	const struct stat *folder; /* a folder that is left out; or NULL */
};

/*
 * Copy the folder FROM into the folder TREE, but not what EXCEPT says. SIZE is filled in either
 * way. False: E2BIG when it is over the ceilings, or another failure; some of it may
 * be there.
 */
bool copy_make(int from, int tree, const struct copy_except *except,
	       struct copy_size *size, struct err *err);
/*
 * Would copy_make copy FROM? Nothing is left in the folder TREE, in which this is tried. False:
 * E2BIG when it is over the ceilings, or another failure.
 */
bool copy_try(int from, int tree, const struct copy_except *except,
	      struct copy_size *size, struct err *err);
/*
 * Throw away what was changed in the copy at RELATIVE and below, and copy it again from FROM.
 * Returns 0 or a number of errno.h. ENOENT: nothing was changed there.
 */
int copy_renew(int from, int tree, const char *relative, const struct copy_except *except);
