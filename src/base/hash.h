/*
 * hash: of contents, in lower-case hex. SHA-256 (FIPS 180-4) where trust depends on the
 * hash: plugins, approvals, patches, stores. XXH3-128, some ten times faster, as the mark
 * by which a session recognises what it has read: a process that wants to deceive the
 * session has to write the file anyway.
 */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HASH_HEX = 64,
	HASH_MARK_HEX = 32,
	HASH_SHOWN = 12 /* digits shown to models; also the minimum accepted */
};

void hash_text(struct str text, char hex[HASH_HEX + 1]);
/* The mark of TEXT. */
void hash_mark(struct str text, char hex[HASH_MARK_HEX + 1]);

enum { HASH_BYTES = 32 };
void hash_bytes(struct str text, uint8_t digest[HASH_BYTES]);

/* Hashes a content that comes in pieces. hash_digest, or hash_digest_text, may be called once. */
struct hash;
struct hash *hash_new(void);
void hash_free(struct hash *hash);
void hash_add(struct hash *hash, struct str piece);
void hash_digest(struct hash *hash, uint8_t digest[HASH_BYTES]);
/* The same in hexadecimal. */
void hash_digest_text(struct hash *hash, char hex[HASH_HEX + 1]);
/*
 * The hash of the file FD from its beginning, and its SIZE in bytes. False with errno, EFBIG: it has more
 * than MOST bytes.
 */
bool hash_file(int fd, uint64_t most, char hex[HASH_HEX + 1], uint64_t *size);
/* For a mark: ends with hash_mark_hex instead of hash_digest. */
struct hash *hash_new_mark(void);
void hash_mark_hex(struct hash *hash, char hex[HASH_MARK_HEX + 1]);

/*
 * The name that git gives a file of this CONTENT in its object store
 * (gitformat-loose(5)): 20 bytes of SHA-1, or 32 of SHA-256. Not for security: it is
 * only compared with git's own names.
 */
void hash_git_blob(struct str content, bool sha256, uint8_t digest[HASH_BYTES]);

/*
 * The HMAC of TEXT with KEY by SHA-1 (RFC 2104), as ssh hashes the names of hosts. Not for
 * security: SHA-1 is weak.
 */
enum { HASH_SHA1_BYTES = 20 };
void hash_hmac_sha1(struct str key, struct str text, uint8_t digest[HASH_SHA1_BYTES]);

/*
 * The HMAC of TEXT with KEY by SHA-256 (RFC 2104), as bytes, which may be those of KEY, and in
 * hexadecimal.
 */
void hash_hmac(struct str key, struct str text, uint8_t digest[HASH_BYTES]);
void hash_hmac_text(struct str key, struct str text, char hex[HASH_HEX + 1]);

/* Does GIVEN (12 to 64 lower-case hex digits) name HEX, of a hash or mark, as a prefix? */
bool hash_matches(const char *given, const char *hex);
bool hash_is_valid(const char *given);
