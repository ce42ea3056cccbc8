/*
 * prune: removes images from the cache (store.h): those that were used longest ago, until what is
 * left fits, and then everything that no image needs any more. An image in use stays.
 */
#pragma once

#include "base/err.h"
#include "image/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that are kept unless told. */
#define PRUNE_KEEP (UINT64_C(20) << 30)

/* How torn blobs are looked for. The first reads only the two documents of an image. */
enum prune_depth {
	PRUNE_SIZES = 0, /* the sizes that the image gives */
	PRUNE_SMALL,     /* and the bytes of blobs of at most 4 MiB */
	PRUNE_BYTES,     /* and all bytes, a second for some hundred MiB */
};

struct prune {
	/* in */
	const struct image_store *store; /* opened with IMAGE_STORE_PRUNES */
	uint64_t keep;                   /* bytes */
	bool dry;                        /* only count */
	enum prune_depth depth;          /* of the search for torn blobs */
	/* digests of images that stay, NULL-ended: snapshots lie over them; or NULL */
	const char *const *needed;
	/* gets each image that goes; or NULL */
	void (*gone)(void *context, const struct image_record *record);
	void *context;
	/* out */
	uint64_t kept, removed; /* bytes */
	size_t images, layers, blobs, leftovers;
	size_t torn;   /* blobs of images that stay, which a pull brings again */
	size_t in_use; /* images that would have gone, but are in use or needed */
};
/* ERR.code is E2BIG when there are too many images to know which layers have a user: no layer goes then. */
bool prune_run(struct prune *prune, struct err *err);

/*
 * Call EACH with each blob of RECORD in STORE that is torn: its size, or, as far as DEPTH says, one of
 * its bytes, is not what the image and the digest say.
 */
void prune_each_torn(const struct image_store *store, const struct image_record *record,
		     enum prune_depth depth,
		     void (*each)(void *context, const char *digest), void *context);
/* Remove the torn blobs of RECORD, of any image, by PRUNE_SMALL. The number of them. */
size_t prune_torn(const struct image_store *store, const struct image_record *record);

/* The bytes of RECORD's layers and blobs, those that it shares with others included. */
uint64_t prune_bytes(const struct image_store *store, const struct image_record *record);
