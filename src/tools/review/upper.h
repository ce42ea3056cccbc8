/*
 * upper: reads the upper folder of an overlay, which a cell has written, into rows: for each
 * path that differs from the tree below, what the layer holds there. A folder that hides
 * what was below it, and a removed folder, become one row for each path in it. Where the kernel
 * lays no layer over a tree, the folder is a copy of the tree, and its rows are what differs
 * from the list of the copy (files/copied.h).
 *
 * All of it is foreign: nothing is opened through a link, names and depth are bounded, and a
 * shape that the kernel does not make in a cell is a row of its own, which is not landed.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "files/copied.h"
#include "files/record.h"
#include "tool/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	UPPER_ROWS_MAX = UNDO_CHANGES_MAX,
	UPPER_TREES_MAX = 64,
	/* A larger file costs more to read than to open, and 10,000 of these files are kept. */
	UPPER_SMALL = 16 << 10,
	UPPER_KEPT_MAX = 32 << 20,
};

/* One writable tree: its layer, and the tree itself. Both are held open. */
struct upper_tree {
	int layer, below;
	struct copied *copied; /* the layer is a copy, and this its list; or NULL */
	const char *path;      /* absolute, of the tree; borrowed */
};

enum upper_shape {
	UPPER_PLAIN,      /* a file, link or folder, or nothing there (a row's state) */
	UPPER_GIT,        /* a `.git`: one row for all of it, and no look into it */
	UPPER_OTHER,      /* a pipe, a socket or a device */
	UPPER_UNREADABLE, /* its owner may not read it */
	UPPER_UNKNOWN,    /* a shape that a cell's overlay does not make */
};

struct upper_row {
	struct str path; /* as in a log (record.h); ends in NUL */
	const struct upper_tree *tree;
	const char *relative; /* the part of the path below the tree */
	enum upper_shape shape;
	/* without the content's digest: upper_hash adds it; ABSENT: the layer has removed it */
	struct undo_state state;
	/*
	 * there was a file below, as the kernel or the list has noted; of a file upper_hash tells
	 * what the kernel has noted
	 */
	bool copied_up;
	uint64_t device; /* with the state's inode: rows of one file have both in common */
	bool linked;     /* the file has several names in the layer */
	/*
	 * upper_hash: all of a small file that has no attributes of its own. No data: it was
	 * not kept.
	 */
	struct str content;
};

struct upper {
	struct upper_row *rows; /* in order of path */
	size_t count;
	struct arena paths;
	struct arena contents; /* upper_keep */
	struct buf text;       /* the file that is read */
	/* what the layer changed in the repository of the workspace, which has no rows */
	bool has_git;
};

void upper_init(struct upper *upper);
void upper_fini(struct upper *upper);

/*
 * Add the rows of TREE; upper_sort ends the reading of all trees. False: there are too many
 * rows, CALL was stopped, or a folder could not be read.
 */
bool upper_read(struct upper *upper, const struct upper_tree *tree, struct call *call,
		struct err *err);
void upper_sort(struct upper *upper);

/* Keep CONTENT as long as UPPER, if that has room for it. No data: it has not. */
static inline struct str upper_keep(struct upper *upper, struct str content)
{
	if (upper->contents.used + content.size > UPPER_KEPT_MAX)
		return (struct str){0};
	return (struct str){arena_copy(&upper->contents, content), content.size};
}

/* Open the file of ROW in the layer. -1 with errno. */
int upper_open(const struct upper_row *row);
/*
 * Add the digest of the content of a file or link to the state of ROW. The shape of a file is
 * known then.
 */
bool upper_hash(struct upper *upper, struct upper_row *row, struct err *err);
/* Append the target of the link of ROW to OUT. */
bool upper_read_link(const struct upper_row *row, struct buf *out, struct err *err);
