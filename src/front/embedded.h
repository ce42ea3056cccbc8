/*
 * embedded: the files that the program brings along: the shipped roles (agents/), the
 * demo's project (examples/demo/), the replays (examples/replays/), what is known of
 * models (models/) and what shells read to complete (completions/). dev/embed makes the table
 * at build time, sorted by name.
 */
#pragma once
#include "base/embedded.h"
#include "base/str.h"

/* Ends with a row whose name is NULL. */
extern const struct embedded_file embedded_files[];

/* The text of the file NAME; empty when there is none. */
struct str embedded_text(const char *name);
