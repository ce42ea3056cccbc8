/*
 * store_kind: the functions that the door of a store (store.c) calls for a folder
 * (store_folder.c) and for a bucket (store_s3.c). SELF is the pointer that `open` gave. The door
 * has checked the names. Several threads may call all of them at the same time.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "fleet/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that are to be written. */
struct store_source {
	struct str text;
	int fd;           /* a regular file, in place of TEXT; -1: none */
	uint64_t size;    /* of the file: its first bytes */
	const char *hash; /* SHA-256 of these bytes, in hexadecimal, where FD is given */
};

struct store_kind {
	/*
	 * WHERE is a path, or begins with s3://; sentences name the store as SHOWN. WRITES, and the
	 * environment, are those of fleet_store_open.
	 */
	bool (*open)(const char *where, const char *shown, bool writes, void **self,
		     struct err *err);
	/* EAGAIN: the file of SOURCE has changed since its hash was made. */
	enum fleet_put (*put)(void *self, const char *name,
			      const struct store_source *source, enum fleet_put_how how,
			      struct err *err);
	/* *HAS: NAME is there, on disk, and has SIZE bytes. */
	bool (*has)(void *self, const char *name, uint64_t size, bool *has, struct err *err);
	/* The bytes of NAME in pieces, until TAKE says false, with ERR. ENOENT: there is none. */
	bool (*read)(void *self, const char *name,
		     bool (*take)(void *context, struct str piece, struct err *err),
		     void *context, struct err *err);
	/* As fleet_store_list; names that no store has are not told. FOLDER ends with a slash, or is empty. */
	bool (*list)(void *self, const char *folder,
		     bool (*take)(void *context, const char *name), void *context,
		     struct err *err);
	bool (*remove)(void *self, const char *name, struct err *err);
	void (*close)(void *self);
};

extern const struct store_kind store_folder_kind, store_s3_kind;
