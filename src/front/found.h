/*
 * found: the model servers that answer now. Somebody without a configuration is told how to
 * get a model. Only addresses on this machine and those that the person gave are
 * contacted.
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
 * Ask the servers at URLS, all at the same time and within LIMIT_MS. URLS is NULL-ended;
 * when it is NULL or empty, ask those of local_urls, and the one of GLOVEBOX_BASE_URL
 * when it is on this machine. ERR: an invalid URL, too many URLs, no libcurl. found_fini
 * in either case.
 */
bool found_look(struct found *found, const char *const *urls, int limit_ms, struct err *err);
void found_fini(struct found *found);

/*
 * Append a sentence to OUT: which servers on this machine answer with which models, or
 * none.
 */
void found_advise(const struct found *found, struct buf *out);
