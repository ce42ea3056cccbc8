/*
 * generate_patch: one file's part of a patch, in git's form (names in quotes where they
 * need it, modes, renames, new and removed files), and the proof that our own reader
 * makes the right content of it. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "base/text/diff.h"

#include <stdbool.h>

/*
 * Append PATH in the form for a record of JSON: unchanged or, when it is no UTF-8, in
 * quotes as in the patch. True: it is in quotes.
 */
bool generate_patch_patch_add_path(const char *path, struct buf *out);
