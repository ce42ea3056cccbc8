/*
 * pull: brings an image into the cache (store.h), so that base_open finds it. `image:REF` is
 * fetched by the program skopeo, which knows registries, credentials, mirrors and proxies; this
 * process speaks to no network. `oci:DIR:TAG` is read where it lies. Then every layer is
 * unpacked that the cache does not have yet (unpacked.h).
 *
 * A pull that is killed leaves the cache as it was before, plus blobs and layers that are whole;
 * the next one goes on with these. Two pulls of one image share the work: the second one waits
 * for the first, and takes what that has brought.
 */
#pragma once

#include "base/err.h"
#include "image/maker.h"
#include "image/manifest.h"
#include "image/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PULL_TIMEOUT_S = 3600 }; /* for the program that fetches, unless told */

struct pull {
	/* in */
	const char *word;  /* image:… or oci:… */
	const char *store; /* the folder of the cache (image_store_path) */
	/*
	 * take the image from there instead of from its registry, in skopeo's words
	 * ("docker-archive:FILE", "dir:DIR", "oci:DIR:TAG"); NULL: docker://REF
	 */
	const char *from;
	double timeout_s;               /* 0: PULL_TIMEOUT_S */
	const char *const *environment; /* for skopeo; NULL-ended */
	/* gets whole sentences and lines without a line end: what happens now; or NULL */
	void (*told)(void *context, const char *line);
	/*
	 * gets how far the layer NUMBER of COUNT is, a few times a second: bytes that were read of
	 * SIZE, and what was made of them; or NULL
	 */
	void (*progress)(void *context, size_t number, size_t count, uint64_t read,
			 uint64_t size, const struct maker_counts *counts);
	void *context;
	/* out */
	char digest[MANIFEST_DIGEST + 1];
	size_t layers, layers_new;  /* of the image; that had to be unpacked */
	struct maker_counts counts; /* of all its layers together */
};

/*
 * Pull. ERR.code: EINVAL for a word that cannot be pulled; ENOENT when skopeo is missing, with the line
 * that installs it; ETIMEDOUT; else ERR has the sentence of the program or of the layer.
 */
bool pull_run(struct pull *pull, struct err *err);

/*
 * Build the image pull->word (image:…) from the folder DIR, whose FILE (NULL: Dockerfile or
 * Containerfile) says how, by the program buildah without root, and pull it from there. ARGS, NULL-ended, are
 * further arguments of `buildah bud`. The commands of FILE run on this machine, where buildah runs
 * them: in no cell.
 */
bool pull_build(struct pull *pull, const char *dir, const char *file,
		const char *const *args, struct err *err);
