/*
 * schema_cap: a number over its ceiling is taken as the ceiling, and the answer says so: a model
 * that asks for more than there is wants the most there is. A number that names something
 * (PARAM_ID) and one that is no number are refused as everything else is.
 */
#pragma once
#include "base/buf.h"
#include "base/value.h"
#include "tool/tool.h"

#include <stdbool.h>

/*
 * Does a number of ROW have a ceiling in a call of TOOL with ARGUMENTS (NULL: one that waits for
 * its answer)? MOST becomes it.
 */
bool schema_cap_find(const struct tool_param *row, const struct tool *tool,
		     const struct value *arguments, double *most);
/* Append the ceiling of ROW as its description has it: ", at most 5"; nothing without one. */
void schema_cap_describe(const struct tool_param *row, const struct tool *tool,
			 struct buf *description);

/*
 * Cap the numbers of ARGUMENTS, nested lists included. CAPPED, NULL at first, becomes an object:
 * the name of an argument, or its JSON pointer within a list, to {given, used}. The caller's.
 */
void schema_cap(const struct tool *tool, struct value *arguments, struct value **capped);
/* Say what was CAPPED (or NULL) in a call of TOOL, in RESULT's text and details. */
void schema_cap_tell(const struct tool *tool, const struct value *capped,
		     struct tool_result *result);
