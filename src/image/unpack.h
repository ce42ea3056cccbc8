/*
 * unpack: reads a tar, plain or compressed by gzip or zstd, and has its entries made
 * (maker.h). libarchive reads the formats (ustar, pax, GNU, sparse files), in the process that
 * unpacks and only there: it is loaded by unpack_load, before that process puts its walls up.
 *
 * The bytes are hashed while they are read, both as they come and after they are
 * decompressed, so that nothing is read twice and nothing unchecked is kept.
 */
#pragma once

#include "base/err.h"
#include "base/hash.h"
#include "image/maker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An archive grows to at most so many times its compressed size; the first bytes of
 * UNPACK_FREE do not count, because a short file of zeros grows a thousand times.
 */
enum { UNPACK_GROWTH_MAX = 200, UNPACK_FREE = 64 << 20 };

struct unpack {
	/* in */
	int archive; /* read from its position to its end: a file, a pipe, a socket */
	int folder;  /* where entries are made; open for reading */
	enum maker_rules rules;
	struct maker_limits limits; /* zero: those of maker.h */
	/* asked now and then; true ends it with ECANCELED. NULL: it is never cancelled */
	bool (*stopped)(void *context);
	void *context;
	/* out; may be read while it runs, when the struct lies in shared memory */
	struct maker_counts counts;
	uint64_t read;  /* bytes of the archive so far */
	uint64_t plain; /* … after they were decompressed */
	uint64_t zeros; /* of these, those without a bit at the end: a whole tar has 1,024 */
	/* SHA-256 of the archive and of the decompressed tar, after success */
	char digest[HASH_HEX + 1], plain_digest[HASH_HEX + 1];
};

/*
 * Load libarchive, before walls that refuse files and executable memory. The character set of
 * the calling thread is UTF-8 from then on, as the names of archives are. ERR names the Debian
 * package when it is missing.
 */
bool unpack_load(struct err *err);
/*
 * Unpack. After unpack_load. False: ERR says which entry could not be made, or that the
 * archive is cut or damaged (EBADMSG), or over which limit it is (E2BIG); entries may have been
 * made.
 */
bool unpack_run(struct unpack *unpack, struct err *err);
