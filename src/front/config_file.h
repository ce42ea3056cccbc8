/*
 * config_file: the configuration from disk. A file that somebody else may write or owns
 * is refused: it decides what agents may do.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "policy/config.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Read PATH, or when NULL glovebox/config.json in the XDG config directory, which may
 * be missing: the configuration is then empty. A PATH that is missing is an error.
 */
bool config_file_load(const char *path, struct config **config, struct err *err);

/*
 * Read one policy (config_parse_policy) from PATH, which is held to the same rules: it
 * decides what a program may do.
 */
bool config_file_load_policy(const char *path, struct value **entry, struct err *err);

/* The whole of PATH into TEXT, held to the same rules. */
bool config_file_read(const char *path, struct buf *text, struct err *err);

/* Append where our own configuration lies; false: there is no home. */
bool config_file_place(struct buf *path);
/* The same of NAME, what else of the person's lies beside it. */
bool config_file_beside(const char *name, struct buf *path);
