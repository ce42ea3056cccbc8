/*
 * explain: what a cell made of these options would show, limit and pass on, and which key,
 * flag or habit brought each of it. No cell is made and nothing runs.
 */
#pragma once
#include "base/value.h"
#include "front/setup.h"

#include <stdbool.h>
#include <stdio.h>

/*
 * Print it on standard output, as a table or as one JSON object. SETUP was made with
 * flags.explain; FLAGS are its flags. An exit code; complaints have been printed. Values of
 * variables are not shown. TIMEOUT_S is what WHO says, 0 for none.
 */
int explain_print(struct setup *setup, const struct setup_flags *flags, double timeout_s,
		  const char *who, bool as_json, FILE *out);
