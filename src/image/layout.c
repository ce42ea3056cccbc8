/* layout: documents by digest, from the index down to the configuration. */

#include "image/layout.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOBS "blobs/sha256/"

/* Bytes of a digest before its digits. */
enum { DIGEST_KIND = sizeof("sha256:") - 1 };

int layout_open_blob(int folder, const char *digest, struct err *err)
{
	char name[sizeof(BLOBS) + HASH_HEX];
	struct stat st;

	if (!manifest_is_digest(str_of(digest))) {
		(void)err_set(err, EBADMSG, "a digest has another form than sha256:HEX");
		return -1;
	}
	(void)snprintf(name, sizeof(name), BLOBS "%s", digest + DIGEST_KIND);
	auto_close int fd = fd_open_beneath(folder, name, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		const int code = fd < 0 ? errno : EINVAL;

		(void)err_set(err, code, "%s: %s", name, strerror(code));
		return -1;
	}
	return fd_take(&fd);
}

bool layout_is_torn(int blob, const char *digest)
{
	char hex[HASH_HEX + 1];
	uint64_t size;

	return hash_file(blob, UINT64_MAX, hex, &size) &&
	       strcmp(hex, digest + DIGEST_KIND) != 0;
}

/* Read the document behind DESCRIPTOR into TEXT. */
static bool read_document(int folder, const struct manifest_descriptor *descriptor,
			  struct buf *text, struct err *err)
{
	char hex[HASH_HEX + 1];
	auto_close int fd = layout_open_blob(folder, descriptor->digest, err);

	if (fd < 0)
		return false;
	buf_clear(text);
	if (!fd_read_all(fd, text, descriptor->digest, err))
		return false;
	if (text->size != descriptor->size)
		return err_set(err, EBADMSG, "%s has %zu bytes instead of %" PRIu64,
			       descriptor->digest, text->size, descriptor->size);
	hash_text(buf_str(text), hex);
	return strcmp(hex, descriptor->digest + DIGEST_KIND) == 0 ||
	       err_set(err, EBADMSG, "%s has other bytes than its digest says",
		       descriptor->digest);
}

bool layout_read_index(int folder, const char *shown, struct manifest_index *index,
		       struct err *err)
{
	struct buf text;
	struct stat st;
	auto_close int fd = fd_open_beneath(folder, "index.json", O_RDONLY);
	bool read;

	*index = (struct manifest_index){0};
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, fd < 0 ? errno : EINVAL,
			       "%s is no OCI layout: it has no index.json", shown);
	buf_init(&text, MANIFEST_BYTES_MAX);
	read = fd_read_all(fd, &text, "index.json", err) &&
	       (manifest_parse_index(buf_str(&text), index, err) ||
		err_while(err, "index.json"));
	buf_fini(&text);
	return read || err_while(err, "%s", shown);
}

/* Keep FOUND, whose texts are an index's, in IMAGE. */
static char *keep(struct layout_image *image, const char *text)
{
	return arena_copy(&image->arena, str_of(text));
}

static void keep_found(struct layout_image *image, const struct manifest_descriptor *found)
{
	image->found = (struct manifest_descriptor){
		.media_type = keep(image, found->media_type),
		.digest = keep(image, found->digest),
		.size = found->size,
		.architecture = keep(image, found->architecture),
		.os = keep(image, found->os),
		.variant = keep(image, found->variant),
		.name = keep(image, found->name),
	};
}

static bool read_config(int folder, struct layout_image *image, struct err *err)
{
	struct buf text;
	bool read;

	buf_init(&text, MANIFEST_BYTES_MAX);
	read = read_document(folder, &image->manifest.config, &text, err) &&
	       manifest_parse_config(buf_str(&text), &image->config, err);
	buf_fini(&text);
	if (!read)
		return err_while(err, "the configuration of the image");
	return image->config.diff_count == image->manifest.layer_count ||
	       err_set(err, EBADMSG, "the image has %zu layers and %zu digests of layers",
		       image->manifest.layer_count, image->config.diff_count);
}

bool layout_read(int folder, const struct manifest_descriptor *found,
		 struct layout_image *image, struct err *err)
{
	struct buf text;
	bool read;

	keep_found(image, found);
	buf_init(&text, MANIFEST_BYTES_MAX);
	read = read_document(folder, &image->found, &text, err) &&
	       manifest_parse(buf_str(&text), &image->manifest, err);
	buf_fini(&text);
	if (!read)
		return err_while(err, "the manifest of the image");
	return read_config(folder, image, err);
}

/* Walk from INDEX down to a manifest for this machine. */
static bool descend(int folder, const struct manifest_index *index, const char *name,
		    size_t nested, struct layout_image *image, struct err *err)
{
	const struct manifest_descriptor *chosen = manifest_choose(index, name);
	struct manifest_index inner = {0};
	struct buf text;
	bool done;

	if (chosen == NULL)
		return err_set(err, ENOENT, "there is no image%s%s for linux/%s",
			       name != NULL ? " " : "", name != NULL ? name : "",
			       manifest_architecture());
	if (manifest_media_of(chosen) == MEDIA_MANIFEST)
		return layout_read(folder, chosen, image, err);
	if (nested == LAYOUT_NESTED_MAX)
		return err_set(err, ELOOP, "too many indexes lie in each other");
	buf_init(&text, MANIFEST_BYTES_MAX);
	done = read_document(folder, chosen, &text, err) &&
	       manifest_parse_index(buf_str(&text), &inner, err) &&
	       descend(folder, &inner, NULL, nested + 1, image, err);
	buf_fini(&text);
	manifest_fini_index(&inner);
	return done;
}

bool layout_find(int folder, const char *shown, const char *name,
		 struct layout_image *image, struct err *err)
{
	struct manifest_index index;
	bool done = layout_read_index(folder, shown, &index, err);
	const bool any = name == NULL || name[0] == '\0';

	if (done && any && index.count > 1)
		done = err_set(err, EINVAL, "%s holds %zu images: name one, as in %s:TAG",
			       shown, index.count, shown);
	else if (done)
		done = descend(folder, &index, any ? NULL : name, 0, image, err) ||
		       err_while(err, "%s", shown);
	manifest_fini_index(&index);
	return done;
}

void layout_fini(struct layout_image *image)
{
	manifest_fini(&image->manifest);
	manifest_fini_config(&image->config);
	arena_fini(&image->arena);
	*image = (struct layout_image){0};
}
