/*
 * store: the door: which kind of store a word means, which names it can have, its trial, and
 * blobs, which are named by the hash of their bytes.
 */

#include "fleet/store.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"
#include "fleet/store_kind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STORE_MARK_NAME "store.json"
#define STORE_MARK      "{\"glovebox_store\": 1}\n"
#define STORE_BLOBS     "blobs/"

enum {
	/* One part of a name, as file systems have it. */
	STORE_PART_MAX = 255,
};

struct fleet_store {
	const struct store_kind *kind;
	void *self; /* of the kind */
	char *where;
};

/* Names. */

bool fleet_store_name_check(const char *name, struct err *err)
{
	size_t part = 0;

	if (strlen(name) >= FLEET_NAME_BYTES)
		return err_set(err, ENAMETOOLONG,
			       "a name in a store has at most %d bytes: %.64s…",
			       FLEET_NAME_BYTES - 1, name);
	for (const char *at = name;; at++) {
		if (*at == '/' || *at == '\0') {
			if (part == 0 || part > STORE_PART_MAX)
				return err_set(err, EINVAL,
					       "%s: a part of a name in a store has 1 to "
					       "%d characters",
					       name, STORE_PART_MAX);
			part = 0;
			if (*at == '\0')
				return true;
			continue;
		}
		if ((part == 0 && *at == '.') ||
		    strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			   "0123456789-_.",
			   *at) == NULL)
			return err_set(err, EINVAL,
				       "a name in a store is made of letters, digits, '-', "
				       "'_' and '.', and no part of it begins with a dot; "
				       "byte %zu is none of these",
				       (size_t)(at - name) + 1);
		part++;
	}
}

/* Is HASH what a blob is named? */
static bool is_hash(const char *hash)
{
	return strlen(hash) == HASH_HEX && strspn(hash, "0123456789abcdef") == HASH_HEX;
}

/* Opening. */

/*
 * A store that does not refuse the second creation of one name would take two results of one
 * task. So the mark of the store is created, and then created again.
 */
static bool try_store(struct fleet_store *store, struct err *err)
{
	for (int i = 0; i < 2; i++) {
		switch (fleet_store_put(store, STORE_MARK_NAME, STR(STORE_MARK),
					FLEET_IF_NEW, err)) {
		case FLEET_PUT_THERE:
			return true;
		case FLEET_PUT_FAILED:
			return false;
		case FLEET_PUT_DONE:
			break;
		}
	}
	return err_set(err, ENOTSUP,
		       "it has created " STORE_MARK_NAME " twice and refused neither, so two "
		       "workers could both write the result of one task; take a file system "
		       "with link(2), or a service for S3 that honours If-None-Match");
}

/* The path in WHERE (file:DIR, file:///DIR, or a path); NULL with ERR: it is no folder. */
static const char *path_of(const char *where, struct err *err)
{
	const char *scheme = strstr(where, "://");

	if (strncmp(where, "file://", 7) == 0 && where[7] != '/')
		(void)err_set(err, EINVAL,
			      "%s: a file: with two slashes names a machine; write "
			      "file:DIR",
			      where);
	else if (strncmp(where, "file:", 5) == 0 && where[5] != '\0')
		return where + 5;
	/* A folder of such a name would take what was meant for a bucket. */
	else if (strncmp(where, "s3:", 3) == 0)
		(void)err_set(err, EINVAL,
			      "%s: a bucket is written s3://BUCKET/PREFIX, and a folder of this "
			      "name file:%s",
			      where, where);
	else if (scheme != NULL && strcspn(where, "/") > (size_t)(scheme - where))
		(void)err_set(err, EINVAL,
			      "%s: a store is a folder (file:DIR) or a bucket "
			      "(s3://BUCKET/PREFIX)",
			      where);
	else if (where[0] == '\0' || strcmp(where, "file:") == 0)
		(void)err_set(err, EINVAL,
			      "the store has no name; write file:DIR or s3://BUCKET/PREFIX");
	else
		return where;
	return NULL;
}

static bool open_kind(struct fleet_store *store, bool writes, struct err *err)
{
	const bool bucket = strncmp(store->where, "s3://", 5) == 0;
	const char *where = bucket ? store->where : path_of(store->where, err);

	store->kind = bucket ? &store_s3_kind : &store_folder_kind;
	return where != NULL &&
	       store->kind->open(where, store->where, writes, &store->self, err);
}

bool fleet_store_open(const char *where, bool writes, struct fleet_store **store,
		      struct err *err)
{
	struct fleet_store *opened = memory_alloc(sizeof(*opened));

	opened->where = memory_copy(where);
	if (!open_kind(opened, writes, err)) {
		opened->kind = NULL;
		fleet_store_close(opened);
		return false;
	}
	if (writes && !try_store(opened, err)) {
		fleet_store_close(opened);
		return err_while(err, "the store %s", where);
	}
	*store = opened;
	return true;
}

void fleet_store_close(struct fleet_store *store)
{
	if (store == NULL)
		return;
	if (store->kind != NULL)
		store->kind->close(store->self);
	free(store->where);
	free(store);
}

const char *fleet_store_where(const struct fleet_store *store)
{
	return store->where;
}

/* Objects. */

enum fleet_put fleet_store_put(struct fleet_store *store, const char *name,
			       struct str bytes, enum fleet_put_how how, struct err *err)
{
	const struct store_source source = {.text = bytes, .fd = -1};

	if (!fleet_store_name_check(name, err))
		return FLEET_PUT_FAILED;
	return store->kind->put(store->self, name, &source, how, err);
}

static bool add_piece(void *context, struct str piece, struct err *err)
{
	struct buf *bytes = context;

	return buf_addstr(bytes, piece) ||
	       err_set(err, EFBIG, "it has more than the %zu bytes that are taken here",
		       bytes->max);
}

bool fleet_store_get(struct fleet_store *store, const char *name, struct buf *bytes,
		     struct err *err)
{
	const size_t before = bytes->size, max = bytes->max;
	bool got;

	if (!fleet_store_name_check(name, err))
		return false;
	if (bytes->max - before > FLEET_OBJECT_MAX)
		bytes->max = before + FLEET_OBJECT_MAX;
	got = store->kind->read(store->self, name, add_piece, bytes, err);
	bytes->max = max;
	if (!got)
		buf_truncate(bytes, before);
	return got || err_while(err, "%s", name);
}

bool fleet_store_list(struct fleet_store *store, const char *folder,
		      bool (*take)(void *context, const char *name), void *context,
		      struct err *err)
{
	char name[FLEET_NAME_BYTES];
	const size_t size = strlen(folder);

	if (size >= sizeof(name))
		return err_set(err, ENAMETOOLONG, "a name in a store has at most %d bytes",
			       FLEET_NAME_BYTES - 1);
	(void)snprintf(name, sizeof(name), "%s", folder);
	if (size > 0 && name[size - 1] == '/')
		name[size - 1] = '\0';
	if (size > 0 && !fleet_store_name_check(name, err))
		return false;
	if (size > 0)
		(void)snprintf(name + strlen(name), sizeof(name) - strlen(name), "/");
	return store->kind->list(store->self, name, take, context, err);
}

bool fleet_store_remove(struct fleet_store *store, const char *name, struct err *err)
{
	return fleet_store_name_check(name, err) &&
	       store->kind->remove(store->self, name, err);
}

/* Blobs. */

bool fleet_store_blob(struct fleet_store *store, int fd, char hash[FLEET_HASH_BYTES],
		      uint64_t *bytes, struct err *err)
{
	char hex[FLEET_HASH_BYTES], name[sizeof(STORE_BLOBS) + FLEET_HASH_BYTES];
	struct store_source source = {.fd = fd, .hash = hex};
	struct stat st;
	bool has = false;

	if (fstat(fd, &st) < 0)
		return err_set(err, errno, "a file for the store: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL,
			       "a blob of a store is made from a regular file only");
	if (!hash_file(fd, FLEET_BLOB_MAX, hex, &source.size))
		return errno == EFBIG
			       ? err_set(err, EFBIG,
					 "a file for the store has more than the %d bytes that a blob may have",
					 FLEET_BLOB_MAX)
			       : err_set(err, errno, "reading a file for the store: %s",
					 strerror(errno));
	(void)snprintf(name, sizeof(name), STORE_BLOBS "%s", hex);
	if (!store->kind->has(store->self, name, source.size, &has, err))
		return false;
	/* A blob of another length was damaged by somebody: the right one takes its place. */
	if (!has && store->kind->put(store->self, name, &source, FLEET_REPLACE, err) ==
			    FLEET_PUT_FAILED)
		return false;
	memcpy(hash, hex, sizeof(hex));
	*bytes = source.size;
	return true;
}

/* A blob on its way out. */
struct fetching {
	struct hash *hash;
	int fd;
};

static bool write_piece(void *context, struct str piece, struct err *err)
{
	struct fetching *fetching = context;

	hash_add(fetching->hash, piece);
	return fd_write_all(fetching->fd, piece.data, piece.size, err);
}

bool fleet_store_fetch(struct fleet_store *store, const char *hash, int fd, struct err *err)
{
	char name[sizeof(STORE_BLOBS) + FLEET_HASH_BYTES], found[FLEET_HASH_BYTES];
	struct fetching fetching = {.fd = fd};
	bool read;

	if (!is_hash(hash))
		return err_set(err, EINVAL,
			       "a blob is named by 64 lower-case hexadecimal digits");
	(void)snprintf(name, sizeof(name), STORE_BLOBS "%s", hash);
	fetching.hash = hash_new();
	read = store->kind->read(store->self, name, write_piece, &fetching, err);
	if (read)
		hash_digest_text(fetching.hash, found);
	hash_free(fetching.hash);
	if (!read)
		return err_while(err, "%s", name);
	return strcmp(found, hash) == 0 ||
	       err_set(err, EBADMSG,
		       "%s in %s is damaged: its bytes have the hash %s; remove it, and do the "
		       "task that made it again",
		       name, store->where, found);
}
