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
	/* digests of images that stay, NULL-ended: snapshots lie over them; or NULL */
	const char *const *needed;
	/* gets each image that goes; or NULL */
	void (*gone)(void *context, const struct image_record *record);
	void *context;
	/* out */
	uint64_t kept, removed; /* bytes */
	size_t images, layers, blobs, leftovers;
	size_t in_use; /* images that would have gone, but are in use or needed */
};
/* ERR.code is E2BIG when there are too many images to know which layers have a user: no layer goes then. */
bool prune_run(struct prune *prune, struct err *err);

/* The bytes of RECORD's layers and blobs, those that it shares with others included. */
uint64_t prune_bytes(const struct image_store *store, const struct image_record *record);
