/*
 * plugin_copy: a plugin's folder, or its single file, hashed as a whole, and copied to where
 * nobody but the user writes: what was checked is what runs. `.git` is no part of it; a link
 * that leads out, and what is neither file nor folder, is refused.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"

#include <stdbool.h>

enum {
	PLUGIN_COPY_MAX = 16 << 20,
	PLUGIN_COPY_FILES = 4096,
	PLUGIN_COPY_DEPTH = 32,
};

/* The hash of SOURCE (absolute): of names, modes and contents. */
bool plugin_copy_hash(const char *source, char hex[HASH_HEX + 1], struct err *err);

/*
 * Copy SOURCE, whose hash is HEX, to FOLDER/HEX/files unless it is there, and append that
 * path, or that of the file in it when SOURCE is one. False also when SOURCE changed meanwhile.
 */
bool plugin_copy_make(const char *source, const char *folder, const char *hex,
		      struct buf *copy, struct err *err);
