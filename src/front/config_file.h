/*
 * config_file: reads the configuration from disk. A file that another user owns or may
 * write is refused, because the configuration decides what agents may do. A file of
 * root is fine.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "policy/config.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Read PATH. NULL: read glovebox/config.json in the XDG config directory; when that file
 * is missing, CONFIG is empty. A PATH that is missing is an error.
 */
bool config_file_load(const char *path, struct config **config, struct err *err);

/*
 * Read one policy (config_parse_policy) from PATH. The same rules of owner and mode hold,
 * because a policy decides what a program may do.
 */
bool config_file_load_policy(const char *path, struct value **entry, struct err *err);

/* Read the whole of PATH into TEXT. The same rules of owner and mode hold. */
bool config_file_read(const char *path, struct buf *text, struct err *err);

/*
 * Append the path of the person's configuration to PATH. False: there is no home
 * directory.
 */
bool config_file_place(struct buf *path);
/* The same for another file or folder, NAME, in the folder of the configuration. */
bool config_file_beside(const char *name, struct buf *path);
