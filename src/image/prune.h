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

struct prune {
	/* in */
	const struct image_store *store; /* opened with IMAGE_STORE_PRUNES */
	uint64_t keep;                   /* bytes */
	bool dry;                        /* only count */
	bool deep;                       /* as in prune_each_torn */
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
 * Call EACH with each blob of RECORD in STORE that is torn: its size, or one of its bytes, is not what the
 * image and the digest say. The bytes of blobs over 4 MiB are compared only with DEEP, because reading
 * all of them takes a second for some hundred MiB.
 */
void prune_each_torn(const struct image_store *store, const struct image_record *record,
		     bool deep, void (*each)(void *context, const char *digest),
		     void *context);
/* Remove the torn blobs of all images, without DEEP. The number of them. */
size_t prune_torn(const struct image_store *store);

/* The bytes of RECORD's layers and blobs, those that it shares with others included. */
uint64_t prune_bytes(const struct image_store *store, const struct image_record *record);
