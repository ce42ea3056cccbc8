/* hash: SHA-256 by nettle; see hash.h. */
#include "base/hash.h"

#include <nettle/sha2.h>
#include <string.h>

_Static_assert(HASH_HEX == 2 * SHA256_DIGEST_SIZE, "two digits a byte");

void hash_text(struct str text, char hex[HASH_HEX + 1])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx context;

	sha256_init(&context);
	if (text.size)
		sha256_update(&context, text.size, (const uint8_t *)text.data);
	sha256_digest(&context, sizeof(digest), digest);
	for (size_t i = 0; i < sizeof(digest); i++) {
		hex[2 * i] = digits[digest[i] >> 4];
		hex[2 * i + 1] = digits[digest[i] & 15];
	}
	hex[HASH_HEX] = '\0';
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
