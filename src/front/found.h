/*
 * found: the model servers of this machine, for whoever has to tell a person where a
 * model could be had. Nothing outside the machine is contacted, but for addresses that
 * the person gave.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "model/local.h"

#include <stdbool.h>
#include <stddef.h>

struct found {
	struct local_server servers[LOCAL_SERVERS_MAX];
	size_t count;
};

/*
 * Ask the servers at URLS (NULL-ended; NULL or empty: those of local_urls, and the one of
 * GLOVEBOX_BASE_URL when it is on this machine), all together within LIMIT_MS. ERR:
 * a URL that is none, too many of them, no libcurl. found_fini in either case.
 */
bool found_look(struct found *found, const char *const *urls, int limit_ms, struct err *err);
void found_fini(struct found *found);

/* Append a sentence about where a model can be had here: servers that answer, or how. */
void found_advise(const struct found *found, struct buf *out);
