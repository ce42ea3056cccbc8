/*
 * embedded: the files that the program brings along: the shipped roles (agents/), the
 * demo's project (examples/demo/) and the replays (examples/replays/). dev/embed makes
 * the table at build time, sorted by name.
 */
#pragma once
#include "base/embedded.h"

/* Ends with a row whose name is NULL. */
extern const struct embedded_file embedded_files[];
