/*
 * manifest: the JSON documents of an image (image-spec 1.1: image-index.md, manifest.md, config.md,
 * and Docker's forms of the same), read into structs. They come from registries and are not
 * trusted: every digest is "sha256:" with 64 lower-case digits, every list has a ceiling, a
 * size is never negative. Members that are not listed here are ignored.
 *
 * Texts and lists of a struct live in its arena until its _fini, which takes a zero struct and
 * one that was filled by halves.
 */
#pragma once

#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MANIFEST_BYTES_MAX = 4 << 20, /* of one document, as registries limit them */
	MANIFEST_LAYERS_MAX = 128,    /* of an image: overlays mount so many */
	MANIFEST_ITEMS_MAX = 4096,    /* of an index */
	MANIFEST_TEXTS_MAX = 1024,    /* of Env, Entrypoint, Cmd */
	MANIFEST_TEXT_MAX = 64 << 10, /* bytes of each of them */
	MANIFEST_DIGEST = 71,         /* bytes of a digest */
};

/* The annotation that names an image in an OCI layout. */
#define MANIFEST_NAME "org.opencontainers.image.ref.name"

enum manifest_media {
	MEDIA_OTHER,    /* signatures, attestations, … */
	MEDIA_INDEX,    /* a list of manifests, one for each platform */
	MEDIA_MANIFEST, /* of an image */
	MEDIA_LAYER,    /* a tar, plain or compressed */
};

struct manifest_descriptor {
	char *media_type, *digest;
	uint64_t size;
	/* of an item of an index; "" or NULL: it does not say */
	char *architecture, *os, *variant, *name;
};

struct manifest_index {
	struct arena arena;
	struct manifest_descriptor *items;
	size_t count;
};

struct manifest {
	struct arena arena;
	struct manifest_descriptor config, *layers;
	size_t layer_count;
};

struct manifest_config {
	struct arena arena;
	char *architecture, *os, *user, *workdir;
	/* lists that end with NULL, as the document has them */
	const char **environment, **entrypoint, **command;
	size_t environment_count, entrypoint_count, command_count;
	const char **diff_ids; /* digests of the decompressed layers, lowest first */
	size_t diff_count;
};

bool manifest_parse_index(struct str text, struct manifest_index *index, struct err *err);
void manifest_fini_index(struct manifest_index *index);
/* The layers are those of a tar: any other kind is an error that names it. */
bool manifest_parse(struct str text, struct manifest *manifest, struct err *err);
void manifest_fini(struct manifest *manifest);
/* A platform other than Linux on this machine is an error that names both. */
bool manifest_parse_config(struct str text, struct manifest_config *config, struct err *err);
void manifest_fini_config(struct manifest_config *config);

/* The kind of the document or layer behind DESCRIPTOR. */
enum manifest_media manifest_media_of(const struct manifest_descriptor *descriptor);
/* Is TEXT a digest as above? */
bool manifest_is_digest(struct str text);
/* The architecture of this machine in the words of an image: "amd64", "arm64". */
const char *manifest_architecture(void);
/*
 * The item of INDEX for Linux on this machine whose name is NAME (NULL: whatever its name);
 * an item without a platform fits, but one that names the platform is better. NULL: there is
 * none.
 */
const struct manifest_descriptor *manifest_choose(const struct manifest_index *index,
						  const char *name);

/*
 * Append INDEX as an index document, with the names and platforms of its items. False when OUT is
 * full.
 */
struct buf;
bool manifest_print_index(const struct manifest_index *index, struct buf *out);
