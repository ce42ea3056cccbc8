/*
 * schema: a tool's parameter rows as JSON Schema, and the arguments of a call made to
 * fit it: what a model's slip left readable is repaired, everything else is refused
 * with a sentence that names the argument, the rule and an example.
 *
 * A number over its ceiling becomes the ceiling.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"
#include "tool/tool.h"

#include <stdbool.h>

/*
 * The JSON Schema of TOOL's arguments: of its rows, members in their order; or the one it
 * brought. The caller's.
 */
struct value *schema_of_tool(const struct tool *tool);

/*
 * The text a model sent as arguments of TOOL. An empty text and null mean {}. False:
 * SENTENCE holds the position, the first bytes and an example.
 */
bool schema_parse_arguments(const struct tool *tool, struct str json,
			    struct value **arguments, struct buf *sentence);

/*
 * Make ARGUMENTS fit SCHEMA, which is TOOL's (schema_of_tool), in place: aliases become
 * names; numbers and booleans sent as text, lists sent as JSON text, and a lone object where
 * a list of objects is due are taken; null for an optional argument is its absence; defaults
 * are filled in; numbers over their ceiling become it, and CAPPED, NULL at first, tells of them
 * (schema.h; of a schema that TOOL brought no number is cut, and CAPPED may be NULL). Then check. False: SENTENCE is for the model. Of a schema that TOOL brought
 * only two things are done before it is asked: null is the absence of what cannot be null, and
 * what is required but has a default is filled in.
 */
bool schema_fit(const struct tool *tool, const struct value *schema,
		struct value *arguments, struct value **capped, struct buf *sentence);

/*
 * A number over its ceiling is taken as the ceiling, and the answer says so: a model
 * that asks for more than there is wants the most there is. A number that names
 * something (PARAM_ID) and one that is no number are refused as everything else is.
 */

/*
 * Cap the numbers of ARGUMENTS, nested lists included. CAPPED, NULL at first, becomes an object:
 * the name of an argument, or its JSON pointer within a list, to {given, used}. The caller's.
 */
void schema_cap(const struct tool *tool, struct value *arguments, struct value **capped);
/* Say what was CAPPED (or NULL) in a call of TOOL, in RESULT's text and details. */
void schema_cap_tell(const struct tool *tool, const struct value *capped,
		     struct tool_result *result);

/* What of a model's slips can be put right without a guess, before the check. */

/*
 * Repair OBJECT in place by ROWS, nested lists included. False when two names of one
 * argument contradict each other: SENTENCE then names both.
 */
bool schema_repair(const struct tool_param *rows, struct value *object,
		   struct buf *sentence);

/* Fill in what is absent and has a default. */
void schema_fill_defaults(const struct tool_param *rows, struct value *object);
