/*
 * mounts: the lines of /proc/self/mountinfo (proc(5)). The caller reads the file; the parts
 * of a mount are views of its text.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/* Of the whole file: a machine with tens of thousands of them. */
enum { MOUNTS_BYTES_MAX = 16 << 20 };

struct mount {
	struct str root;  /* of the file system, what is mounted; as written */
	struct str point; /* where; as written (mounts_add_path) */
	struct str type; /* of the file system; empty when the line breaks off before it */
	struct str super; /* its own options; likewise */
};

/*
 * Take the next mount off the front of *REST, in the order of mounting. A line without a mount
 * point is passed over. False when none is left.
 */
bool mounts_next(struct str *rest, struct mount *mount);

/* Append PATH as the kernel writes it, "\040" for a blank, as it is. False at the ceiling. */
bool mounts_add_path(struct str path, struct buf *out);
