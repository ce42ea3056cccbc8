/* prune: oldest images first, then layers, blobs and leftovers that nobody names. */

#include "image/prune.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "image/layout.h"
#include "image/unpacked.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGITS "0123456789abcdef"
/* Begins the names of what is being removed. */
#define GONE ".gone-"

enum {
	DIGEST_KIND = sizeof("sha256:") - 1,
	IMAGES_MAX = MANIFEST_ITEMS_MAX, /* records that are looked at */
	BLOCK = 512,                     /* of st_blocks */
	NAMES_MAX = 64 << 10, /* of one folder; the others wait for the next time */
};

static char no_text[] = "";

/* The folders that are swept. */
enum kind {
	KIND_LAYERS,
	KIND_BLOBS,
	KIND_PULLS,
};

enum image_state {
	IMAGE_STAYS,
	IMAGE_GOES,
};

struct image {
	struct image_record record;
	enum image_state state;
};

/* A layer or blob, by the digits of its digest. */
struct piece {
	char hex[HASH_HEX + 1];
	bool is_layer;
	uint64_t bytes;
	size_t users; /* images that stay */
};

struct survey {
	struct prune *prune;
	struct image *images;
	size_t image_count;
	bool too_many; /* there are more, whose layers are not known */
	struct piece *pieces;
	size_t piece_count;
};

static uint64_t blob_bytes(const struct image_store *store, const char *digest)
{
	char name[sizeof("blobs/sha256/") + HASH_HEX];
	struct stat st;

	(void)snprintf(name, sizeof(name), "blobs/sha256/%.*s", HASH_HEX,
		       digest + DIGEST_KIND);
	return fstatat(store->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0
		       ? (uint64_t)st.st_blocks * BLOCK
		       : 0;
}

static uint64_t layer_bytes(const struct image_store *store, const char *diff)
{
	struct maker_counts counts;

	return unpacked_look(store, diff, &counts) ? counts.bytes : 0;
}

uint64_t prune_bytes(const struct image_store *store, const struct image_record *record)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < record->layer_count; i++)
		bytes += layer_bytes(store, record->layers[i]);
	for (size_t i = 0; i < record->blob_count; i++)
		bytes += blob_bytes(store, record->blobs[i]);
	return bytes;
}

/* Torn blobs. */

/* The size that IMAGE gives its blob DIGEST; false: it does not say. */
static bool size_said(const struct layout_image *image, const char *digest, uint64_t *size)
{
	const struct manifest_descriptor *config = &image->manifest.config;

	if (strcmp(image->found.digest, digest) == 0) {
		*size = image->found.size;
		return true;
	}
	if (config->digest != NULL && strcmp(config->digest, digest) == 0) {
		*size = config->size;
		return true;
	}
	for (size_t i = 0; i < image->manifest.layer_count; i++) {
		if (strcmp(image->manifest.layers[i].digest, digest) == 0) {
			*size = image->manifest.layers[i].size;
			return true;
		}
	}
	return false;
}

void prune_each_torn(const struct image_store *store, const struct image_record *record,
		     enum prune_depth depth,
		     void (*each)(void *context, const char *digest), void *context)
{
	const struct manifest_descriptor found = {.media_type = record->media_type,
						  .digest = record->digest,
						  .size = record->size,
						  .architecture = no_text,
						  .os = no_text,
						  .variant = no_text,
						  .name = no_text};
	struct layout_image image = {0};
	struct err err;

	if (record->blob_count == 0)
		return;
	/* A torn manifest names no layers, and is found by its own digest. */
	(void)layout_read(store->folder, &found, &image, &err);
	for (size_t i = 0; i < record->blob_count; i++) {
		const char *digest = record->blobs[i];
		auto_close int fd = layout_open_blob(store->folder, digest, &err);
		struct stat st;
		uint64_t size;

		if (fd < 0 || fstat(fd, &st) < 0)
			continue;
		if ((size_said(&image, digest, &size) && size != (uint64_t)st.st_size) ||
		    ((depth == PRUNE_BYTES ||
		      (depth == PRUNE_SMALL && st.st_size <= MANIFEST_BYTES_MAX)) &&
		     layout_is_torn(fd, digest)))
			each(context, digest);
	}
	layout_fini(&image);
}

struct tearing {
	const struct image_store *store;
	bool dry;
	size_t count;
};

static void remove_torn(void *context, const char *digest)
{
	struct tearing *tearing = context;
	auto_close int folder = fd_open_beneath(tearing->store->folder, "blobs/sha256",
						O_RDONLY | O_DIRECTORY);

	/* One that two images share is gone the second time. */
	if (tearing->dry || (folder >= 0 && unlinkat(folder, digest + DIGEST_KIND, 0) == 0))
		tearing->count++;
}

size_t prune_torn(const struct image_store *store, const struct image_record *record)
{
	struct tearing tearing = {.store = store};

	prune_each_torn(store, record, PRUNE_SMALL, remove_torn, &tearing);
	return tearing.count;
}

/* The survey. */

static struct piece *find_piece(struct survey *survey, const char *hex, bool is_layer)
{
	for (size_t i = 0; i < survey->piece_count; i++) {
		struct piece *piece = &survey->pieces[i];

		if (piece->is_layer == is_layer && strncmp(piece->hex, hex, HASH_HEX) == 0)
			return piece;
	}
	return NULL;
}

static void use_piece(struct survey *survey, const char *digest, bool is_layer)
{
	struct piece *piece = find_piece(survey, digest + DIGEST_KIND, is_layer);

	if (piece == NULL) {
		survey->pieces = memory_more(survey->pieces, survey->piece_count,
					     sizeof(*survey->pieces));
		piece = &survey->pieces[survey->piece_count++];
		*piece = (struct piece){
			.is_layer = is_layer,
			.bytes = is_layer ? layer_bytes(survey->prune->store, digest)
					  : blob_bytes(survey->prune->store, digest),
		};
		(void)snprintf(piece->hex, sizeof(piece->hex), "%.*s", HASH_HEX,
			       digest + DIGEST_KIND);
	}
	piece->users++;
}

static void each_piece(struct survey *survey, const struct image_record *record,
		       void (*each)(struct survey *survey, const char *digest, bool is_layer))
{
	for (size_t i = 0; i < record->layer_count; i++)
		each(survey, record->layers[i], true);
	for (size_t i = 0; i < record->blob_count; i++)
		each(survey, record->blobs[i], false);
}

static const char **copy_list(struct arena *arena, const char *const *list, size_t count)
{
	const char **copy = arena_alloc(arena, (count + 1) * sizeof(*copy));

	for (size_t i = 0; i < count; i++)
		copy[i] = arena_copy(arena, str_of(list[i]));
	return copy;
}

static bool take_image(void *context, const struct image_record *record)
{
	struct survey *survey = context;
	struct image *image;
	struct arena *arena;

	survey->too_many = survey->image_count == IMAGES_MAX;
	if (survey->too_many)
		return false;
	image = &survey->images[survey->image_count++];
	arena = &image->record.arena;
	image->record = *record;
	arena_init(arena);
	image->record.word = arena_copy(arena, str_of(record->word));
	image->record.digest = arena_copy(arena, str_of(record->digest));
	image->record.media_type = arena_copy(arena, str_of(record->media_type));
	image->record.layers = copy_list(arena, record->layers, record->layer_count);
	image->record.blobs = copy_list(arena, record->blobs, record->blob_count);
	each_piece(survey, &image->record, use_piece);
	return true;
}

static int compare_use(const void *a, const void *b)
{
	const struct image *one = a, *other = b;

	return (one->record.used_ms > other->record.used_ms) -
	       (one->record.used_ms < other->record.used_ms);
}

/* Images. */

static void drop_piece(struct survey *survey, const char *digest, bool is_layer)
{
	struct piece *piece = find_piece(survey, digest + DIGEST_KIND, is_layer);

	if (piece != NULL && --piece->users == 0)
		survey->prune->kept -= piece->bytes;
}

/* Take the record away, unless a base in use holds it. */
static bool remove_record(const struct image_store *store,
			  const struct image_record *record, bool dry)
{
	char name[sizeof("used/.json") + HASH_HEX];
	auto_close int lock = -1;

	(void)snprintf(name, sizeof(name), "used/%.*s.json", HASH_HEX,
		       record->digest + DIGEST_KIND);
	if (!image_store_is_free(store, record->digest, &lock))
		return false;
	return dry || unlinkat(store->folder, name, 0) == 0;
}

static bool is_needed(const struct prune *prune, const char *digest)
{
	const char *const *at = prune->needed;

	while (at != NULL && *at != NULL && strcmp(*at, digest) != 0)
		at++;
	return at != NULL && *at != NULL;
}

static void choose_images(struct survey *survey)
{
	struct prune *prune = survey->prune;

	for (size_t i = 0; i < survey->image_count && prune->kept > prune->keep; i++) {
		struct image *image = &survey->images[i];

		if (is_needed(prune, image->record.digest) ||
		    !remove_record(prune->store, &image->record, prune->dry)) {
			prune->in_use++;
			continue;
		}
		image->state = IMAGE_GOES;
		each_piece(survey, &image->record, drop_piece);
		prune->images++;
		if (prune->gone != NULL)
			prune->gone(prune->context, &image->record);
	}
}

/* Names of images that went, in the index. */
static bool drop_names(const struct survey *survey, struct err *err)
{
	for (size_t i = 0; i < survey->image_count; i++) {
		const struct image *image = &survey->images[i];

		if (image->state == IMAGE_GOES &&
		    !image_store_forget(survey->prune->store, image->record.digest, err))
			return false;
	}
	return true;
}

/* Folders and files. */

static bool is_digits(const char *name)
{
	return strlen(name) == HASH_HEX && strspn(name, DIGITS) == HASH_HEX;
}

static uint64_t look_bytes(const struct prune *prune, const char *name, bool is_layer)
{
	char digest[DIGEST_KIND + HASH_HEX + 1];

	(void)snprintf(digest, sizeof(digest), "sha256:%s", name);
	return is_layer ? layer_bytes(prune->store, digest)
			: blob_bytes(prune->store, digest);
}

/* Under another name first: nobody may find half a layer. */
static void remove_name(int folder, const char *name)
{
	char gone[sizeof(GONE) + NAME_MAX];

	(void)snprintf(gone, sizeof(gone), GONE "%s", name);
	if (name[0] == '.' || renameat(folder, name, folder, gone) < 0)
		(void)snprintf(gone, sizeof(gone), "%s", name);
	if (unlinkat(folder, gone, 0) < 0)
		fd_folder_remove_at(folder, gone);
}

/* Is NAME START and 64 digits, and with END this and something random? */
static bool is_made(const char *name, const char *start, const char *end)
{
	const size_t size = strlen(start);

	if (strncmp(name, start, size) != 0 || strspn(name + size, DIGITS) != HASH_HEX)
		return false;
	name += size + HASH_HEX;
	return end != NULL ? strncmp(name, end, strlen(end)) == 0 : name[0] == '\0';
}

/* Only names that we give: a user may keep other files beside ours. */
static bool is_leftover(const char *name, enum kind kind)
{
	static const char build[] = IMAGE_STORE_PULL_BUILD;

	switch (kind) {
	case KIND_LAYERS:
		return is_made(name, ".", ".") || is_made(name, GONE, NULL);
	case KIND_BLOBS:
		return is_made(name, GONE, NULL);
	case KIND_PULLS:
		return is_made(name, "." IMAGE_STORE_PULL_LOCK, ".") ||
		       strncmp(name, build, sizeof(build) - 1) == 0;
	}
	return false;
}

/* Remove what nobody uses in a folder, and what killed processes have left there. */
static void sweep(struct survey *survey, enum kind kind)
{
	static const char *const folders[] = {
		[KIND_LAYERS] = "layers",
		[KIND_BLOBS] = "blobs/sha256",
		[KIND_PULLS] = IMAGE_STORE_PULLS,
	};
	struct prune *prune = survey->prune;
	/* Where a link leads is not the cache. */
	auto_close int fd = fd_open_beneath(prune->store->folder, folders[kind],
					    O_RDONLY | O_DIRECTORY);
	struct fd_names names = {0};

	if (fd < 0)
		return;
	fd_names_read(&names, fd, NAMES_MAX, true);
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.items[i];
		const bool is_piece = kind != KIND_PULLS && is_digits(name);
		const struct piece *piece =
			is_piece ? find_piece(survey, name, kind == KIND_LAYERS) : NULL;

		if (is_piece ? piece != NULL && piece->users > 0 : !is_leftover(name, kind))
			continue;
		if (!is_piece)
			prune->leftovers++;
		else if (kind == KIND_LAYERS)
			prune->layers++;
		else
			prune->blobs++;
		prune->removed +=
			is_piece ? look_bytes(prune, name, kind == KIND_LAYERS) : 0;
		if (!prune->dry)
			remove_name(fd, name);
	}
	fd_names_fini(&names);
}

/* Is NAME a lock of ours that nobody holds? *LOCK holds it now. */
static bool is_free_lock(int folder, const char *name, int *lock)
{
	if (strcmp(name, IMAGE_STORE_INDEX_LOCK) != 0 &&
	    strcmp(name, IMAGE_STORE_RECORDS_LOCK) != 0 &&
	    !is_made(name, "layer-", NULL) && !is_made(name, IMAGE_STORE_PULL_LOCK, NULL) &&
	    !is_made(name, IMAGE_STORE_HOLD, NULL))
		return false;
	*lock = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return *lock >= 0 && flock(*lock, LOCK_EX | LOCK_NB) == 0;
}

/*
 * While we have the lock of the store, nobody waits for one of these but those that hold an image
 * (image_store_hold), and they look whether it has its name still.
 */
static void sweep_locks(const struct prune *prune)
{
	auto_close int fd =
		fd_open_beneath(prune->store->folder, "locks", O_RDONLY | O_DIRECTORY);
	struct fd_names names = {0};

	if (fd < 0 || prune->dry)
		return;
	fd_names_read(&names, fd, NAMES_MAX, true);
	for (size_t i = 0; i < names.count; i++) {
		auto_close int lock = -1;

		if (is_free_lock(fd, names.items[i], &lock))
			(void)unlinkat(fd, names.items[i], 0);
	}
	fd_names_fini(&names);
}

bool prune_run(struct prune *prune, struct err *err)
{
	struct survey survey = {
		.prune = prune,
		.images = memory_array(IMAGES_MAX, sizeof(*survey.images)),
	};
	struct tearing tearing = {.store = prune->store, .dry = prune->dry};
	bool done;

	image_store_each(prune->store, take_image, &survey);
	qsort(survey.images, survey.image_count, sizeof(*survey.images), compare_use);
	prune->kept = 0;
	for (size_t i = 0; i < survey.piece_count; i++)
		prune->kept += survey.pieces[i].bytes;
	choose_images(&survey);
	for (size_t i = 0; i < survey.image_count; i++) {
		if (survey.images[i].state == IMAGE_STAYS)
			prune_each_torn(prune->store, &survey.images[i].record,
					prune->depth, remove_torn, &tearing);
	}
	prune->torn = tearing.count;
	done = prune->dry || drop_names(&survey, err);
	/* A layer without a user here may belong to an image that was not looked at. */
	if (done && survey.too_many)
		done = err_set(err, E2BIG,
			       "the cache has more than %d images, so all layers stay; "
			       "%zu images were removed: run it again with a smaller --keep",
			       (int)IMAGES_MAX, prune->dry ? 0 : prune->images);
	if (done) {
		sweep(&survey, KIND_LAYERS);
		sweep(&survey, KIND_BLOBS);
		sweep(&survey, KIND_PULLS);
		sweep_locks(prune);
	}
	for (size_t i = 0; i < survey.image_count; i++)
		image_store_fini(&survey.images[i].record);
	free(survey.images);
	free(survey.pieces);
	return done;
}
