/*
 * seal: signs text that a client must send back unchanged: HMAC-SHA-256 (RFC 2104) with a
 * key of this process.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"

#include <stdbool.h>

enum { SEAL_KEY = 32 };

struct seal_key {
	uint8_t bytes[SEAL_KEY];
};

/* A key that nobody knows. */
void seal_key_make(struct seal_key *key);
/* SIZE - 1 hex digits that nobody had before, and an end. */
void seal_name_make(char *name, size_t size);
/* Append TEXT, a dot and its seal, which is valid for PURPOSE only. */
void seal_add(const struct seal_key *key, struct str purpose, struct str text,
	      struct buf *sealed);
/* Did seal_add make SEALED for PURPOSE? Then *TEXT is its part before the seal. */
bool seal_check(const struct seal_key *key, struct str purpose, struct str sealed,
		struct str *text);
