/*
 * explain: which files, limits, hosts and variables a cell would have, and which key, flag or
 * default each of them comes from (`exec --explain`, `wrap --explain`). No cell is made and
 * nothing runs.
 */
#pragma once

#include "base/buf.h"
#include "base/value.h"
#include "front/setup.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * Print the explanation on OUT, as a table or as one JSON object. SETUP was made with
 * flags.explain; FLAGS are its flags. TIMEOUT_S is the time of the program, TIMEOUT_WHY its
 * origin. Returns an exit code; complaints have been printed. Values of variables are not
 * shown. MORE: members for the JSON object, or NULL.
 */
int explain_print(struct setup *setup, const struct setup_flags *flags, double timeout_s,
		  const char *timeout_why, bool as_json, const struct value *more,
		  FILE *out);

/*
 * Tell a person at a terminal for which repositories the key of a forge holds: an earlier
 * cell may have made the repository of the workspace.
 */
void explain_repositories(const struct setup *setup);

/*
 * Append the nearest folder above WORKSPACE (absolute, normal) that has a `.git`; false
 * when WORKSPACE itself has a `.git`, or no folder above it has one. Only names are
 * examined.
 */
bool explain_repository_above(const char *workspace, struct buf *above);
