/*
 * unpacked: makes sure that the cache holds a layer unpacked, by the digest of its tar (diff id), so
 * that images share it. A process of our own does it: it is started by exec with an empty
 * environment, loads libarchive, and then locks itself in (sandbox/outside.h): it sees the
 * compressed layer, one empty folder, and a piece of memory in which it tells how far it is. It
 * has no socket, no program and no other file.
 *
 * The front makes the folder under a name with a dot in front and renames it when both digests are as
 * the image says. Two fronts that want one layer share the work: the second one waits for the
 * lock of the layer.
 */
#pragma once

#include "base/err.h"
#include "base/hash.h"
#include "image/maker.h"
#include "image/manifest.h"
#include "image/store.h"

#include <stdbool.h>
#include <stdint.h>

struct unpacked {
	/* in */
	const struct image_store *store; /* opened with IMAGE_STORE_ADDS */
	int layout;                      /* the folder whose blobs hold the layer */
	const struct manifest_descriptor *layer;
	const char *diff; /* the digest of the tar */
	/* called a few times a second, with the bytes that were read; or NULL */
	void (*progress)(void *context, uint64_t read, const struct maker_counts *counts);
	/* called before waiting for another process that unpacks the layer; or NULL */
	void (*waiting)(void *context);
	void *context;
	/* out */
	bool was_there;             /* nothing had to be done */
	struct maker_counts counts; /* also those of a layer that was there */
};

bool unpacked_make(struct unpacked *unpacked, struct err *err);

/* A process that unpacks one tar and nothing else. */
struct unpacked_tree;
/*
 * Begin to unpack ARCHIVE, a tar from its position on, into the empty folder FOLDER, as a layer
 * (MAKER_LAYER). Both are borrowed for this call only, and nothing is compared. NULL: ERR says why.
 */
struct unpacked_tree *unpacked_tree_begin(int archive, int folder, struct err *err);
/* A descriptor that can be read when TREE is at its end; it goes with TREE. */
int unpacked_tree_fd(const struct unpacked_tree *tree);
/*
 * Wait for the end, for an hour since the beginning at most (ETIMEDOUT), and take what was counted.
 * DIGEST: of the tar. False: entries may have been made.
 */
bool unpacked_tree_end(struct unpacked_tree *take_tree, struct maker_counts *counts,
		       char digest[HASH_HEX + 1], struct err *err);
/* End TREE (or NULL) now. */
void unpacked_tree_stop(struct unpacked_tree *take_tree);
/* The counts of the layer DIFF; false: it is not unpacked. */
bool unpacked_look(const struct image_store *store, const char *diff,
		   struct maker_counts *counts);

/* To be called first thing in main: plays the role of that process, and never returns then. */
void unpacked_role(int argc, char **argv);
