/*
 * store: the cache of images, a folder of the user ($XDG_CACHE_HOME/glovebox/images). Everything in it
 * can be made again:
 *
 *   index.json, oci-layout, blobs/sha256/   one OCI layout: documents and layers as they were
 *                                           pulled, shared by all images
 *   layers/HEX/tree, layers/HEX/about.json  a layer unpacked, by the digest of its tar, and the
 *                                           counts of what was left out (unpacked.h)
 *   used/HEX.json                           an image that can be used, by the digest of its
 *                                           manifest: its word, its layers, its blobs
 *   pulls/                                  images that arrive, and are not whole yet
 *   locks/                                  empty files, each locked by the process that works on its thing
 *
 * Each file is written beside its name and renamed, so a process that is killed leaves the old
 * or the new one; its leftovers have names with a dot in front and are removed by `prune`.
 *
 * Locks: a process that adds to the store holds the lock of the store shared, `prune` holds it alone. A
 * base in use (base.h) holds locks/used-HEX shared, so that `prune` leaves its record and its layers:
 * not the record itself, which each pull replaces by another file.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/memory.h"
#include "image/manifest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Set PATH to the folder of the cache, from the values of XDG_CACHE_HOME and HOME (NULL: not
 * set). False: there is neither.
 */
bool image_store_path(const char *cache_home, const char *home, struct buf *path);

struct image_store {
	int folder; /* open for reading */
	int lock;   /* of the whole store; -1: it is only read */
	char *path; /* real */
};

enum image_store_use {
	IMAGE_STORE_READS, /* takes no lock; the store must exist (ENOENT) */
	IMAGE_STORE_ADDS,  /* makes the store when it is missing; waits for a `prune` */
	/* EBUSY while something is added */
	IMAGE_STORE_PRUNES,
};
bool image_store_open(const char *path, enum image_store_use use,
		      struct image_store *store, struct err *err);
void image_store_close(struct image_store *store);

/*
 * The folder in which images arrive, each in a folder of its own: a dot, the lock of the pull
 * (IMAGE_STORE_PULL_LOCK and the hash of its name) and what is random, or IMAGE_STORE_PULL_BUILD and
 * what is random.
 */
#define IMAGE_STORE_PULLS      "pulls"
#define IMAGE_STORE_PULL_LOCK  "pull-"
#define IMAGE_STORE_PULL_BUILD ".build."

/* The locks of those who change index.json, and records. */
#define IMAGE_STORE_INDEX_LOCK   "index"
#define IMAGE_STORE_RECORDS_LOCK "records"

/*
 * Lock NAME ("layer-HEX") for this process alone. *HAD_TO_WAIT: another process had it, WAITING
 * (or NULL) was called before the wait. The descriptor holds the lock; -1.
 */
int image_store_lock(const struct image_store *store, const char *name,
		     void (*waiting)(void *context), void *context, bool *had_to_wait,
		     struct err *err);

/* Set PATH to that of the unpacked layer DIFF ("sha256:…"), absolute. */
void image_store_layer(const struct image_store *store, const char *diff, struct buf *path);

/* An image that can be used. Texts and lists belong to the arena. */
struct image_record {
	struct arena arena;
	char *word;   /* "image:docker.io/library/python:3.12" or "oci:DIR:TAG" */
	char *digest; /* of the manifest */
	char *media_type;
	uint64_t size;       /* of the manifest */
	const char **layers; /* diff ids, lowest first */
	size_t layer_count;
	const char **blobs; /* digests in blobs/sha256/ that are this image's */
	size_t blob_count;
	int64_t used_ms; /* when it was last pulled or used */
};
/*
 * Write RECORD in place of an older one of the image. One with blobs stays when RECORD has none (the
 * image lies in a layout elsewhere too), or `prune` would remove its blobs; it counts as used now.
 */
bool image_store_write(const struct image_store *store, const struct image_record *record,
		       struct err *err);
bool image_store_parse(struct str text, struct image_record *record, struct err *err);
void image_store_fini(struct image_record *record);

/*
 * Hold the image of the manifest DIGEST against `prune` (*HELD, shared lock) and note that it
 * is used now. False with ENOENT: the store does not have it.
 */
bool image_store_hold(const struct image_store *store, const char *digest, int *held,
		      struct err *err);
/* The lock of a base in use: this and the digits of its manifest. */
#define IMAGE_STORE_HOLD "used-"
/* For `prune`: does nobody hold the image? Then *LOCK keeps it so. */
bool image_store_is_free(const struct image_store *store, const char *digest, int *lock);

/* Call EACH with the records of the store, in no order, until it returns false. */
void image_store_each(const struct image_store *store,
		      bool (*each)(void *context, const struct image_record *record),
		      void *context);

/* Give NAME to the manifest FOUND in index.json, in place of an older one. */
bool image_store_name(const struct image_store *store, const char *name,
		      const struct manifest_descriptor *found, struct err *err);
/* Take all names of the manifest DIGEST out of index.json. */
bool image_store_forget(const struct image_store *store, const char *digest,
			struct err *err);
