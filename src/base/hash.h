/* hash: SHA-256 (FIPS 180-4), the one content hash of the product, in lower-case hex. */
#pragma once
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	HASH_HEX = 64,
	HASH_SHOWN = 12 /* digits shown to models; also the fewest accepted */
};

void hash_text(struct str text, char hex[HASH_HEX + 1]);

/* Does GIVEN (12 to 64 lower-case hex digits) name HEX, as a prefix? */
bool hash_matches(const char *given, const char hex[HASH_HEX + 1]);
bool hash_is_valid(const char *given);
