/* state: where the user's state lies, and the databases in it. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "store/database.h"

#include <stdbool.h>

/*
 * Append the place of NAME: $XDG_STATE_HOME (when absolute) or ~/.local/state, then
 * glovebox/NAME. False without a home.
 */
bool state_path(const char *name, struct buf *path, struct err *err);

/* database_open for a file at PATH whose folders are made first (0700). WHAT: "the journal". */
bool state_open(const char *path, const char *what, const char *const *schema,
		struct database **database, struct err *err);
