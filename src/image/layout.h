/*
 * layout: reads images from a folder of the OCI form (image-spec, image-layout.md): `index.json`
 * names manifests, `blobs/sha256/HEX` holds every document and layer under its digest. The
 * folder may be anybody's: no link in it is followed, each document is read with a ceiling and
 * compared with its digest before it is parsed.
 */
#pragma once

#include "base/err.h"
#include "base/memory.h"
#include "image/manifest.h"

#include <stdbool.h>
#include <stddef.h>

enum { LAYOUT_NESTED_MAX = 4 }; /* indexes in each other */

/* One image of a layout. Zero before; layout_fini in any case. */
struct layout_image {
	struct manifest_descriptor found; /* of its manifest; texts of `arena` */
	struct arena arena;
	struct manifest manifest;
	struct manifest_config config; /* as many diff_ids as the manifest has layers */
};

/*
 * Find the image NAME (NULL or "": the only one) in the layout at FOLDER and read its manifest and
 * its configuration. SHOWN is the word for FOLDER in sentences. ERR.code is ENOENT when the layout has no
 * such image, or none for this machine.
 */
bool layout_find(int folder, const char *shown, const char *name,
		 struct layout_image *image, struct err *err);
/* Read the image whose manifest is FOUND (digest, size, media type). */
bool layout_read(int folder, const struct manifest_descriptor *found,
		 struct layout_image *image, struct err *err);
void layout_fini(struct layout_image *image);

/* Open the blob of DIGEST in the layout at FOLDER for reading; its content is not checked. -1. */
int layout_open_blob(int folder, const char *digest, struct err *err);

/* Has BLOB, all of which could be read, other bytes than DIGEST says? The whole blob is read. */
bool layout_is_torn(int blob, const char *digest);

/* Read and check the index of the layout at FOLDER. */
bool layout_read_index(int folder, const char *shown, struct manifest_index *index,
		       struct err *err);
