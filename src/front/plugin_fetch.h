/*
 * plugin_fetch: a git repository into a folder, by git, in a cell of its own that writes there
 * and reaches only the listed hosts.
 */
#pragma once
#include "base/err.h"
#include "base/hash.h"
#include "base/value.h"
#include "plugins/plugin_source.h"

#include <stdbool.h>

struct plugin_fetch_terms {
	/* entries as `network` has them; NULL: the host that the source names, and no other */
	const struct value *hosts;
	const char *resolver; /* as session.h */
	int minimum_level;
};

/*
 * SOURCE at COMMIT, or at its ref when that is "", into FOLDER/files; COMMIT becomes what it is
 * at.
 */
bool plugin_fetch(const struct plugin_source *source, const struct plugin_fetch_terms *terms,
		  const char *folder, char commit[HASH_HEX + 1], struct err *err);
