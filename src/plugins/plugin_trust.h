/*
 * plugin_trust: what the user has let in: for each source the hash of what it was then, and of
 * a git source the commit. One file of the user's state, which no cell shows.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"

#include <stdbool.h>

struct plugin_trusted {
	char hash[HASH_HEX + 1];   /* "" when it is in no record */
	char commit[HASH_HEX + 1]; /* of git; "" else */
};

/*
 * Set TRUSTED to the entry of SOURCE in FOLDER's record. A record that cannot be read is an
 * error.
 */
bool plugin_trust_find(const char *folder, const char *source,
		       struct plugin_trusted *trusted, struct err *err);
/*
 * Remove the copies below CACHE that no record of FOLDER names and that are older than
 * PLUGIN_KEPT_DAYS: a session that runs may still show one.
 */
enum { PLUGIN_KEPT_DAYS = 30 };
void plugin_trust_prune(const char *folder, const char *cache);
bool plugin_trust_record(const char *folder, const char *source,
			 const struct plugin_trusted *trusted, struct err *err);
