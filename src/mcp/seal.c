/* seal: HMAC by the one hash there is; see seal.h. */
#include "mcp/seal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
	BLOCK = 64, /* of SHA-256 */
	INNER = 0x36,
	OUTER = 0x5c,
};

void seal_key_make(struct seal_key *key)
{
	/* So few bytes come whole, or the kernel has none to give: nothing is safe then. */
	if (getrandom(key->bytes, sizeof(key->bytes), 0) != (ssize_t)sizeof(key->bytes))
		abort();
}

void seal_name_make(char *name, size_t size)
{
	static const char digits[] = "0123456789abcdef";
	struct seal_key bytes;

	assert(size <= SEAL_KEY);
	seal_key_make(&bytes);
	for (size_t i = 0; i + 1 < size; i++)
		name[i] = digits[bytes.bytes[i] & 15];
	name[size - 1] = '\0';
}

static struct hash *begin(const struct seal_key *key, uint8_t pad)
{
	struct hash *hash = hash_new();
	uint8_t block[BLOCK] = {0};

	memcpy(block, key->bytes, SEAL_KEY);
	for (size_t i = 0; i < BLOCK; i++)
		block[i] ^= pad;
	hash_add(hash, (struct str){(const char *)block, BLOCK});
	return hash;
}

static void seal_of(const struct seal_key *key, struct str purpose, struct str text,
		    char hex[HASH_HEX + 1])
{
	static const char digits[] = "0123456789abcdef";
	struct hash *hash = begin(key, INNER);
	const uint64_t size = purpose.size;
	uint8_t digest[HASH_BYTES];

	/* With its size before it, so that purpose and text cannot be cut elsewhere. */
	hash_add(hash, (struct str){(const char *)&size, sizeof(size)});
	hash_add(hash, purpose);
	hash_add(hash, text);
	hash_digest(hash, digest);
	hash_free(hash);
	hash = begin(key, OUTER);
	hash_add(hash, (struct str){(const char *)digest, HASH_BYTES});
	hash_digest(hash, digest);
	hash_free(hash);
	for (size_t i = 0; i < HASH_BYTES; i++) {
		hex[2 * i] = digits[digest[i] >> 4];
		hex[2 * i + 1] = digits[digest[i] & 15];
	}
	hex[HASH_HEX] = '\0';
}

void seal_add(const struct seal_key *key, struct str purpose, struct str text,
	      struct buf *sealed)
{
	char hex[HASH_HEX + 1];

	seal_of(key, purpose, text, hex);
	(void)buf_addstr(sealed, text);
	(void)buf_addf(sealed, ".%s", hex);
}

bool seal_check(const struct seal_key *key, struct str purpose, struct str sealed,
		struct str *text)
{
	char hex[HASH_HEX + 1];
	unsigned differs = 0;

	if (sealed.size < HASH_HEX + 1 || sealed.data[sealed.size - HASH_HEX - 1] != '.')
		return false;
	const struct str inner = str_part(sealed, 0, sealed.size - HASH_HEX - 1);
	const char *given = sealed.data + inner.size + 1;

	seal_of(key, purpose, inner, hex);
	/* All of it, however early it differs: time tells nothing. */
	for (size_t i = 0; i < HASH_HEX; i++)
		differs |= (unsigned char)hex[i] ^ (unsigned char)given[i];
	if (differs != 0)
		return false;
	*text = inner;
	return true;
}
