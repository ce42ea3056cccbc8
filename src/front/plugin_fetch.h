/*
 * plugin_fetch: fetches a git repository into a folder. git runs in a cell of its own,
 * which may write only there and reach only the listed hosts.
 */
#pragma once
#include "base/err.h"
#include "base/hash.h"
#include "base/value.h"
#include "plugins/source.h"

#include <stdbool.h>

struct plugin_fetch_terms {
	/* entries like those of `network`; NULL: only the host that the source names */
	const struct value *hosts;
	const char *resolver; /* as in struct session_options */
	int minimum_level;
};

/*
 * Fetch SOURCE into FOLDER/files, at COMMIT or, when COMMIT is "", at its ref. COMMIT
 * becomes the commit that was fetched.
 */
bool plugin_fetch(const struct plugin_source *source, const struct plugin_fetch_terms *terms,
		  const char *folder, char commit[HASH_HEX + 1], struct err *err);
