/* hash: SHA-256, computed by nettle, and XXH3-128 by libxxhash. */
#include "base/hash.h"

#include "base/memory.h"

#include <errno.h>
#include <nettle/hmac.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

_Static_assert(HASH_HEX == 2 * SHA256_DIGEST_SIZE, "two digits a byte");
_Static_assert(HASH_MARK_HEX == 2 * sizeof(XXH128_canonical_t), "two digits a byte");

enum { FILE_PIECE = 256 << 10 }; /* of one read */

struct hash {
	struct sha256_ctx context;
	XXH3_state_t *mark; /* NULL: SHA-256 */
};

struct hash *hash_new(void)
{
	struct hash *hash = memory_alloc(sizeof(*hash));

	sha256_init(&hash->context);
	return hash;
}

void hash_free(struct hash *hash)
{
	if (hash != NULL)
		(void)XXH3_freeState(hash->mark);
	free(hash);
}

void hash_add(struct hash *hash, struct str piece)
{
	if (piece.size > 0 && hash->mark != NULL)
		(void)XXH3_128bits_update(hash->mark, piece.data, piece.size);
	else if (piece.size > 0)
		sha256_update(&hash->context, piece.size, (const uint8_t *)piece.data);
}

void hash_digest(struct hash *hash, uint8_t digest[HASH_BYTES])
{
	sha256_digest(&hash->context, HASH_BYTES, digest);
}

void hash_bytes(struct str text, uint8_t digest[HASH_BYTES])
{
	struct hash hash = {.mark = NULL};

	sha256_init(&hash.context);
	hash_add(&hash, text);
	hash_digest(&hash, digest);
}

void hash_git_blob(struct str content, bool sha256, uint8_t digest[HASH_BYTES])
{
	char head[40];
	/* Include the NUL. */
	size_t size = (size_t)snprintf(head, sizeof(head), "blob %zu", content.size) + 1;
	struct sha1_ctx sha1;
	struct hash hash = {.mark = NULL};

	if (sha256) {
		sha256_init(&hash.context);
		hash_add(&hash, (struct str){head, size});
		hash_add(&hash, content);
		hash_digest(&hash, digest);
		return;
	}
	sha1_init(&sha1);
	sha1_update(&sha1, size, (const uint8_t *)head);
	if (content.size)
		sha1_update(&sha1, content.size, (const uint8_t *)content.data);
	sha1_digest(&sha1, SHA1_DIGEST_SIZE, digest);
}

static void print_hex(const uint8_t *digest, size_t size, char *hex)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < size; i++) {
		hex[2 * i] = digits[digest[i] >> 4];
		hex[2 * i + 1] = digits[digest[i] & 15];
	}
	hex[2 * size] = '\0';
}

void hash_text(struct str text, char hex[HASH_HEX + 1])
{
	uint8_t digest[HASH_BYTES];

	hash_bytes(text, digest);
	print_hex(digest, sizeof(digest), hex);
}

void hash_digest_text(struct hash *hash, char hex[HASH_HEX + 1])
{
	uint8_t digest[HASH_BYTES];

	hash_digest(hash, digest);
	print_hex(digest, sizeof(digest), hex);
}

bool hash_file(int fd, uint64_t most, char hex[HASH_HEX + 1], uint64_t *size)
{
	auto_free char *piece = memory_alloc(FILE_PIECE);
	struct hash *hash = hash_new();
	ssize_t n = 1;

	*size = 0;
	while (n != 0 && *size <= most) {
		n = pread(fd, piece, FILE_PIECE, (off_t)*size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		hash_add(hash, (struct str){piece, (size_t)n});
		*size += (uint64_t)n;
	}
	hash_digest_text(hash, hex);
	hash_free(hash);
	if (*size > most)
		errno = EFBIG;
	return n == 0 && *size <= most;
}

void hash_hmac(struct str key, struct str text, uint8_t digest[HASH_BYTES])
{
	struct hmac_sha256_ctx context;

	hmac_sha256_set_key(&context, key.size, (const uint8_t *)key.data);
	hmac_sha256_update(&context, text.size, (const uint8_t *)text.data);
	hmac_sha256_digest(&context, HASH_BYTES, digest);
}

static void mark_hex(XXH128_hash_t value, char hex[HASH_MARK_HEX + 1])
{
	XXH128_canonical_t bytes;

	XXH128_canonicalFromHash(&bytes, value);
	print_hex(bytes.digest, sizeof(bytes.digest), hex);
}

void hash_mark(struct str text, char hex[HASH_MARK_HEX + 1])
{
	mark_hex(XXH3_128bits(text.data, text.size), hex);
}

struct hash *hash_new_mark(void)
{
	struct hash *hash = memory_alloc(sizeof(*hash));

	hash->mark = XXH3_createState();
	if (hash->mark == NULL)
		memory_exhausted(sizeof(*hash));
	(void)XXH3_128bits_reset(hash->mark);
	return hash;
}

void hash_mark_hex(struct hash *hash, char hex[HASH_MARK_HEX + 1])
{
	mark_hex(XXH3_128bits_digest(hash->mark), hex);
}

void hash_hmac_sha1(struct str key, struct str text, uint8_t digest[HASH_SHA1_BYTES])
{
	struct hmac_sha1_ctx context;

	hmac_sha1_set_key(&context, key.size, (const uint8_t *)key.data);
	hmac_sha1_update(&context, text.size, (const uint8_t *)text.data);
	hmac_sha1_digest(&context, HASH_SHA1_BYTES, digest);
}

void hash_hmac_text(struct str key, struct str text, char hex[HASH_HEX + 1])
{
	uint8_t digest[HASH_BYTES];

	hash_hmac(key, text, digest);
	print_hex(digest, sizeof(digest), hex);
}

bool hash_matches(const char *given, const char *hex)
{
	return hash_is_valid(given) && strncmp(given, hex, strlen(given)) == 0;
}

bool hash_is_valid(const char *given)
{
	size_t size = given ? strspn(given, "0123456789abcdef") : 0;

	return size >= HASH_SHOWN && size <= HASH_HEX && given[size] == '\0';
}
