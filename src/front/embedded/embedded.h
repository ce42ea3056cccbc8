/*
 * embedded: the files that are built into the program: the shipped roles (agents/), the
 * demo's project (examples/demo/), the replays (examples/replays/), the catalogue of models
 * (models/), the completion scripts of shells (completions/), the profiles of other people's
 * agents (wrap/) and what a page needs (page/). dev/embed makes the table at build time,
 * sorted by name.
 */
#pragma once

#include "base/library.h"
#include "base/str.h"

/* The catalogue of models, for catalogue_open. */
#define EMBEDDED_CATALOGUE "models/catalogue.json"

/* Ends with a row whose name is NULL. */
extern const struct embedded_file embedded_files[];

/* The text of the file NAME; empty when there is none. */
struct str embedded_text(const char *name);
