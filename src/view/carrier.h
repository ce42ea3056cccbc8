/*
 * carrier: finds where the layer of a tree may lie (view/review.h), by trying. An anchor of its
 * own builds a view of this layer and this tree alone and ends; so whatever the kernel, a
 * file system, a container or a security module refuses is found, on either side. The places,
 * the better first: the state folder, memory, and a copy of the tree.
 *
 * A try takes as long as a cell. Its outcome is noted beside the layers of the workspace, in a
 * link whose text names the boot and the mounts of both sides, and holds until one of these is
 * another. A copy is tried anew each time.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "view/review.h"

#include <stdbool.h>
#include <stddef.h>

struct cell_spec;

/*
 * Find the place of the tree N of REVIEW, which is new, in a cell of SPEC: TREE is its folder. A
 * tree that has to be copied is copied. False: there is no place (ECHILD), or another failure.
 */
bool carrier_find(struct cell_spec *spec, struct review *review, size_t n, int tree,
		  struct err *err);
/* A cell with REVIEW was refused: forget what was noted about its workspace. */
void carrier_forget(const struct review *review);
/*
 * Say in TEXT where a new layer over WORKSPACE (a real path) in FOLDER would lie, or why there is
 * no place; always by trying. False: there is none. *REMEDY says what would help; NULL: it lies
 * in the best place.
 */
bool carrier_tell(const char *folder, const char *workspace, const char **remedy,
		  struct buf *text);
