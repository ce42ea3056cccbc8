/*
 * explain: prints which files, limits and variables a cell made of these options would
 * have, and which key, flag or default each of them comes from. No cell is made and
 * nothing runs.
 */
#pragma once
#include "base/value.h"
#include "front/setup.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * Print the explanation on OUT, as a table or as one JSON object. SETUP was made with
 * flags.explain; FLAGS are its flags. Returns an exit code; complaints have been printed.
 * Values of variables are not shown. TIMEOUT_S is the timeout (0: none), and WHO names
 * where it comes from.
 */
int explain_print(struct setup *setup, const struct setup_flags *flags, double timeout_s,
		  const char *who, bool as_json, FILE *out);
