/* store: the folder of the cache, its locks, its index and the records of its images. */

#include "image/store.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/path.h"
#include "image/layout.h"

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

#define STORE_NAME  "glovebox/images"
#define STORE_LOCK  "locks/store"
#define RECORD_END  ".json"
#define LAYOUT_TEXT "{\"imageLayoutVersion\": \"1.0.0\"}\n"

enum {
	DIGEST_KIND = sizeof("sha256:") - 1,
	RECORD_BYTES_MAX = 256 << 10,
	WORD_MAX = 8192,
	OWNER_ONLY = S_IRUSR | S_IWUSR,
};

bool image_store_path(const char *cache_home, const char *home, struct buf *path)
{
	return path_xdg(cache_home, home, ".cache", STORE_NAME, path);
}

/* Append STORE's path and NAME. */
static void add_path(const struct image_store *store, const char *name, struct buf *path)
{
	buf_clear(path);
	(void)buf_addf(path, "%s/%s", store->path, name);
}

static bool make_store(const char *path, struct err *err)
{
	static const char *const folders[] = {"blobs/sha256/", "layers/", "used/", "locks/"};
	struct buf name;
	bool made = true;

	buf_init(&name, PATH_MAX);
	for (size_t i = 0; made && i < sizeof(folders) / sizeof(folders[0]); i++) {
		buf_clear(&name);
		made = (buf_addf(&name, "%s/%s", path, folders[i]) ||
			err_set(err, ENAMETOOLONG, "%s: the name is too long", path)) &&
		       fd_make_folders(name.data, err);
	}
	buf_clear(&name);
	(void)buf_addf(&name, "%s/oci-layout", path);
	if (made && access(name.data, F_OK) < 0)
		made = fd_replace_file(name.data, STR(LAYOUT_TEXT), err);
	buf_fini(&name);
	return made;
}

static bool take_lock(struct image_store *store, enum image_store_use use, struct err *err)
{
	const int how = use == IMAGE_STORE_PRUNES ? LOCK_EX | LOCK_NB : LOCK_SH;

	store->lock = openat(store->folder, STORE_LOCK,
			     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, OWNER_ONLY);
	if (store->lock >= 0 && flock(store->lock, how) == 0)
		return true;
	if (errno == EWOULDBLOCK)
		return err_set(err, EBUSY,
			       "something is being added to the cache of images; "
			       "try again when that is done");
	return err_set(err, errno, "%s/" STORE_LOCK ": %s", store->path, strerror(errno));
}

bool image_store_open(const char *path, enum image_store_use use,
		      struct image_store *store, struct err *err)
{
	struct buf real;
	bool opened;

	*store = (struct image_store){.folder = -1, .lock = -1};
	if (use == IMAGE_STORE_ADDS && !make_store(path, err))
		return err_while(err, "the cache of images");
	store->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->folder < 0)
		return err_set(err, errno, "the cache of images %s: %s", path,
			       strerror(errno));
	buf_init(&real, PATH_MAX);
	opened = fd_real_path(store->folder, &real) ||
		 err_set(err, errno, "%s: %s", path, strerror(errno));
	store->path = buf_take(&real);
	buf_fini(&real);
	if (opened && use != IMAGE_STORE_READS)
		opened = take_lock(store, use, err);
	if (!opened)
		image_store_close(store);
	return opened;
}

void image_store_close(struct image_store *store)
{
	fd_close(&store->folder);
	fd_close(&store->lock);
	free(store->path);
	store->path = NULL;
}

int image_store_lock(const struct image_store *store, const char *name,
		     void (*waiting)(void *context), void *context, bool *had_to_wait,
		     struct err *err)
{
	char path[NAME_MAX];

	(void)snprintf(path, sizeof(path), "locks/%s", name);
	auto_close int fd = openat(store->folder, path,
				   O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, OWNER_ONLY);
	*had_to_wait = false;
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd_take(&fd);
	if (fd >= 0 && errno == EWOULDBLOCK) {
		*had_to_wait = true;
		if (waiting != NULL)
			waiting(context);
		while (flock(fd, LOCK_EX) < 0) {
			if (errno != EINTR)
				goto failed;
		}
		return fd_take(&fd);
	}
failed:
	(void)err_set(err, errno, "%s/%s: %s", store->path, path, strerror(errno));
	return -1;
}

void image_store_layer(const struct image_store *store, const char *diff, struct buf *path)
{
	buf_clear(path);
	(void)buf_addf(path, "%s/layers/%s/tree", store->path, diff + DIGEST_KIND);
}

/* Records. */

static const struct field record_fields[] = {
	FIELD(struct image_record, word, .max = WORD_MAX),
	FIELD(struct image_record, digest, .max = MANIFEST_DIGEST),
	FIELD(struct image_record, media_type, .max = WORD_MAX),
	FIELD(struct image_record, size, .min = 0, .max = MANIFEST_BYTES_MAX),
	FIELD_TEXTS(struct image_record, layers, layer_count, "layers",
		    .max = MANIFEST_LAYERS_MAX),
	FIELD_TEXTS(struct image_record, blobs, blob_count, "blobs",
		    .max = MANIFEST_LAYERS_MAX + 2),
	{0},
};

/* The name of the record of DIGEST below the store. */
enum { RECORD_NAME = sizeof("used/") + HASH_HEX + sizeof(RECORD_END) };
static void record_name(const char *digest, char name[RECORD_NAME])
{
	(void)snprintf(name, RECORD_NAME, "used/%.*s" RECORD_END, HASH_HEX,
		       digest + DIGEST_KIND);
}

static bool keep_digests(struct arena *arena, const char **list, size_t count,
			 struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		if (!manifest_is_digest(str_of(list[i])))
			return err_set(err, EBADMSG, "it lists something else than digests");
		list[i] = arena_copy(arena, str_of(list[i]));
	}
	return true;
}

bool image_store_parse(struct str text, struct image_record *record, struct err *err)
{
	auto_value struct value *object = NULL;
	struct arena *arena = &record->arena;

	*record = (struct image_record){0};
	return value_parse(text, 0, &object, err) &&
	       fields_read(object, record_fields, record, arena, err) &&
	       keep_digests(arena, record->layers, record->layer_count, err) &&
	       keep_digests(arena, record->blobs, record->blob_count, err) &&
	       (manifest_is_digest(str_of(record->digest)) ||
		err_set(err, EBADMSG, "it has no digest"));
}

void image_store_fini(struct image_record *record)
{
	arena_fini(&record->arena);
	*record = (struct image_record){0};
}

/* Read the record NAME ("used/HEX.json"). Call image_store_fini, also when there is none. */
static bool read_record(const struct image_store *store, const char *name,
			struct image_record *record)
{
	struct buf text;
	struct stat st;

	auto_close int fd = openat(store->folder, name,
				   O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	*record = (struct image_record){0};
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	buf_init(&text, RECORD_BYTES_MAX);
	const bool read = fd_read_all(fd, &text, name, NULL) &&
			  image_store_parse(buf_str(&text), record, NULL);
	buf_fini(&text);
	record->used_ms = clock_ns(&st.st_mtim) / 1000000;
	return read;
}

static bool write_record(const struct image_store *store,
			 const struct image_record *record, struct err *err)
{
	auto_value struct value *object = fields_print(record_fields, record);
	char name[RECORD_NAME];
	struct buf path, text;
	bool written;

	buf_init(&path, PATH_MAX);
	buf_init(&text, RECORD_BYTES_MAX);
	record_name(record->digest, name);
	add_path(store, name, &path);
	written = (value_print(object, VALUE_PRETTY, &text) ||
		   err_set(err, E2BIG, "the record of the image is too large")) &&
		  fd_replace_file(path.data, buf_str(&text), err);
	buf_fini(&path);
	buf_fini(&text);
	return written;
}

bool image_store_write(const struct image_store *store, const struct image_record *record,
		       struct err *err)
{
	struct image_record old = {0};
	char name[RECORD_NAME];
	bool waited, stays;
	/* Two pulls of the same manifest by different words have no lock in common. */
	auto_close int lock = image_store_lock(store, IMAGE_STORE_RECORDS_LOCK, NULL,
					       NULL, &waited, err);

	if (lock < 0)
		return false;
	record_name(record->digest, name);
	stays = record->blob_count == 0 && read_record(store, name, &old) &&
		old.blob_count > 0;
	image_store_fini(&old);
	return stays ? utimensat(store->folder, name, NULL, AT_SYMLINK_NOFOLLOW) == 0 ||
			       err_set(err, errno, "%s: %s", name, strerror(errno))
		     : write_record(store, record, err);
}

/* The name of the lock of the image DIGEST below the store. */
enum { HOLD_NAME = sizeof("locks/" IMAGE_STORE_HOLD) + HASH_HEX };
static void hold_name(const char *digest, char name[HOLD_NAME])
{
	(void)snprintf(name, HOLD_NAME, "locks/" IMAGE_STORE_HOLD "%.*s", HASH_HEX,
		       digest + DIGEST_KIND);
}

/* Lock NAME shared. -1 with errno. */
static int lock_shared(const struct image_store *store, const char *name, int flags)
{
	for (;;) {
		struct stat st;
		auto_close int fd =
			openat(store->folder, name,
			       flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, OWNER_ONLY);

		if (fd < 0)
			return -1;
		while (flock(fd, LOCK_SH) < 0) {
			if (errno != EINTR)
				return -1;
		}
		if (fstat(fd, &st) < 0)
			return -1;
		/* `prune` may have removed it meanwhile: another one has the name. */
		if (st.st_nlink > 0)
			return fd_take(&fd);
	}
}

bool image_store_hold(const struct image_store *store, const char *digest, int *held,
		      struct err *err)
{
	char name[RECORD_NAME], lock[HOLD_NAME];
	struct stat st;

	record_name(digest, name);
	hold_name(digest, lock);
	/* Nothing is made for an image that is not there. */
	if (fstatat(store->folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(err, errno, "%s: %s", name, strerror(errno));
	auto_close int fd = lock_shared(store, lock, O_RDWR | O_CREAT);
	/* Where no lock can be made, nobody prunes. */
	if (fd < 0 && (errno == EROFS || errno == EACCES))
		fd = lock_shared(store, name, O_RDONLY);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", lock, strerror(errno));
	if (utimensat(store->folder, name, NULL, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return err_set(err, ENOENT, "%s: it was removed", name);
	*held = fd_take(&fd);
	return true;
}

bool image_store_is_free(const struct image_store *store, const char *digest, int *lock)
{
	char name[RECORD_NAME], hold[HOLD_NAME];

	record_name(digest, name);
	hold_name(digest, hold);
	auto_close int fd = openat(store->folder, hold,
				   O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
				   OWNER_ONLY);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return false;
	/* Earlier versions lock the record. */
	auto_close int record = openat(store->folder, name,
				       O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (record < 0 || flock(record, LOCK_EX | LOCK_NB) < 0)
		return false;
	*lock = fd_take(&fd);
	return true;
}

void image_store_each(const struct image_store *store,
		      bool (*each)(void *context, const struct image_record *record),
		      void *context)
{
	auto_close int folder =
		openat(store->folder, "used", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = folder >= 0 ? fd_open_names(folder) : NULL;
	bool more = true;

	for (const struct dirent *at = names != NULL ? readdir(names) : NULL;
	     at != NULL && more; at = readdir(names)) {
		struct image_record record;
		char name[NAME_MAX + sizeof("used/")];

		if (strlen(at->d_name) != HASH_HEX + sizeof(RECORD_END) - 1 ||
		    !str_ends(str_of(at->d_name), STR(RECORD_END)))
			continue;
		(void)snprintf(name, sizeof(name), "used/%s", at->d_name);
		if (read_record(store, name, &record))
			more = each(context, &record);
		image_store_fini(&record);
	}
	if (names != NULL)
		(void)closedir(names);
}

/* The index. */

/* A change of the index: FOUND gets NAME, or DIGEST has no name any more. */
struct change {
	const char *name, *digest;
	const struct manifest_descriptor *found;
};

static bool is_same(const char *one, const char *other)
{
	return one != NULL && other != NULL && strcmp(one, other) == 0;
}

static bool change_index(struct manifest_index *index, const struct change *change,
			 struct err *err)
{
	struct manifest_descriptor *items =
		arena_alloc(&index->arena, (index->count + 1) * sizeof(*items));
	size_t count = 0;

	for (size_t i = 0; i < index->count; i++) {
		if (!is_same(index->items[i].name, change->name) &&
		    !is_same(index->items[i].digest, change->digest))
			items[count++] = index->items[i];
	}
	if (change->found != NULL) {
		items[count] = *change->found;
		items[count++].name = arena_copy(&index->arena, str_of(change->name));
	}
	index->items = items;
	index->count = count;
	return count <= MANIFEST_ITEMS_MAX ||
	       err_set(err, E2BIG, "the cache has too many images; run glovebox base prune");
}

static bool rewrite_index(const struct image_store *store, const struct change *change,
			  struct err *err)
{
	bool waited, written = false;
	auto_close int lock =
		image_store_lock(store, IMAGE_STORE_INDEX_LOCK, NULL, NULL, &waited, err);
	struct manifest_index index = {0};
	struct buf path, text;
	struct err missing;

	if (lock < 0)
		return false;
	buf_init(&path, PATH_MAX);
	buf_init(&text, MANIFEST_BYTES_MAX);
	if (layout_read_index(store->folder, store->path, &index, &missing) ||
	    missing.code == ENOENT)
		written = change_index(&index, change, err) &&
			  (manifest_print_index(&index, &text) ||
			   err_set(err, E2BIG, "the index of the cache is too large"));
	else
		(void)err_set(err, missing.code, "%s", missing.text);
	add_path(store, "index.json", &path);
	written = written && fd_replace_file(path.data, buf_str(&text), err);
	buf_fini(&path);
	buf_fini(&text);
	manifest_fini_index(&index);
	return written;
}

bool image_store_name(const struct image_store *store, const char *name,
		      const struct manifest_descriptor *found, struct err *err)
{
	const struct change change = {.name = name, .found = found};

	return rewrite_index(store, &change, err);
}

bool image_store_forget(const struct image_store *store, const char *digest, struct err *err)
{
	const struct change change = {.digest = digest};

	return rewrite_index(store, &change, err);
}
