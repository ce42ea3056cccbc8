/*
 * generate_patch: one file's part of a patch, as git writes it (names in quotes where they need
 * it, modes, renames, files made and removed), and the proof that our own reader makes of it
 * what it should. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "base/text/diff.h"

#include <stdbool.h>

/*
 * Append PATH as a record of JSON holds it: as it is, or, when it is no UTF-8, in quotes as the
 * patch has it. True: it is in quotes.
 */
bool generate_patch_patch_add_path(const char *path, struct buf *out);
