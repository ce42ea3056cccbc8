/* tool: calls one tool and prints the result, for the verbs that do so. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "front/setup.h"
#include "front/verb.h"

#include <stdbool.h>
#include <stdio.h>

struct verb_tool_wish {
	const char *tool;
	struct str arguments; /* JSON as it was written */
	bool json;            /* print the whole result */
};

/* The options of a verb that calls one tool. */
extern const struct option_row tool_call_options[];

/* Open SETUP's session, call the tool and print its result. Returns an exit code. */
int tool_call_with(struct setup *setup, const struct verb_tool_wish *wish, FILE *out);

/*
 * Find the arguments' JSON: the second word, standard input (read into INPUT) for "-", or
 * none.
 */
bool tool_read_arguments(const struct options *options, struct buf *input,
			 struct str *text, struct err *err);
