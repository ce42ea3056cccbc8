/*
 * embedded: the files that are built into the program: the shipped roles (agents/), the
 * demo's project (examples/demo/), the replays (examples/replays/), the catalogue of
 * models (models/) and the completion scripts of shells (completions/). dev/embed makes
 * the table at build time, sorted by name.
 */
#pragma once
#include "base/library.h"
#include "base/str.h"

/* Ends with a row whose name is NULL. */
extern const struct embedded_file embedded_files[];

/* The text of the file NAME; empty when there is none. */
struct str embedded_text(const char *name);
