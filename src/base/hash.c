/* hash: SHA-256, computed by nettle. */
#include "base/hash.h"

#include "base/memory.h"

#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

_Static_assert(HASH_HEX == 2 * SHA256_DIGEST_SIZE, "two digits a byte");

struct hash {
	struct sha256_ctx context;
};

struct hash *hash_new(void)
{
	struct hash *hash = memory_alloc(sizeof(*hash));

	sha256_init(&hash->context);
	return hash;
}

void hash_free(struct hash *hash)
{
	free(hash);
}

void hash_add(struct hash *hash, struct str piece)
{
	if (piece.size)
		sha256_update(&hash->context, piece.size, (const uint8_t *)piece.data);
}

void hash_digest(struct hash *hash, uint8_t digest[HASH_BYTES])
{
	sha256_digest(&hash->context, HASH_BYTES, digest);
}

void hash_bytes(struct str text, uint8_t digest[HASH_BYTES])
{
	struct hash hash;

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
	struct hash hash;

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

void hash_hex(struct hash *hash, char hex[HASH_HEX + 1])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t digest[HASH_BYTES];

	hash_digest(hash, digest);
	for (size_t i = 0; i < sizeof(digest); i++) {
		hex[2 * i] = digits[digest[i] >> 4];
		hex[2 * i + 1] = digits[digest[i] & 15];
	}
	hex[HASH_HEX] = '\0';
}

void hash_text(struct str text, char hex[HASH_HEX + 1])
{
	struct hash hash;

	sha256_init(&hash.context);
	hash_add(&hash, text);
	hash_hex(&hash, hex);
}

bool hash_matches(const char *given, const char hex[HASH_HEX + 1])
{
	return hash_is_valid(given) && strncmp(given, hex, strlen(given)) == 0;
}

bool hash_is_valid(const char *given)
{
	size_t size = given ? strspn(given, "0123456789abcdef") : 0;

	return size >= HASH_SHOWN && size <= HASH_HEX && given[size] == '\0';
}
