/*
 * spill: files in the cell's temporary folder that hold what an answer had no room for. A
 * spill is nameless until it is kept; the newest SPILL_KEPT stay.
 */
#pragma once
#include "base/buf.h"

#include <stdbool.h>

enum { SPILL_KEPT = 16 };

/* A nameless file below FOLDER (made when missing), or -1: then there is no spill. */
int spill_open(const char *folder);
/* Name it: PATH becomes FOLDER/N.log. */
bool spill_keep(int fd, const char *folder, struct buf *path);
