/* hash: SHA-256 by nettle; see hash.h. */
#include "base/hash.h"

#include <nettle/sha2.h>
#include <string.h>

#include "base/memory.h"

_Static_assert(HASH_HEX == 2 * SHA256_DIGEST_SIZE, "two digits a byte");

struct hash_state {
	struct sha256_ctx context;
};

struct hash_state *hash_new(void)
{
	struct hash_state *state = memory_alloc(sizeof(*state));

	sha256_init(&state->context);
	return state;
}

void hash_add(struct hash_state *state, const void *data, size_t size)
{
	if (size)
		sha256_update(&state->context, size, data);
}

static void hash_print(struct sha256_ctx *context, char hex[HASH_HEX + 1])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t digest[SHA256_DIGEST_SIZE];

	sha256_digest(context, sizeof(digest), digest);
	for (size_t i = 0; i < sizeof(digest); i++) {
		hex[2 * i] = digits[digest[i] >> 4];
		hex[2 * i + 1] = digits[digest[i] & 15];
	}
	hex[HASH_HEX] = '\0';
}

void hash_finish(struct hash_state *take_state, char hex[HASH_HEX + 1])
{
	hash_print(&take_state->context, hex);
	free(take_state);
}

void hash_text(struct str text, char hex[HASH_HEX + 1])
{
	struct hash_state state;

	sha256_init(&state.context);
	hash_add(&state, text.data, text.size);
	hash_print(&state.context, hex);
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
