/*
 * schema: makes a JSON Schema of a tool's parameter rows, and makes the arguments of a
 * call fit it. A slip of the model whose meaning is clear is repaired; everything else
 * is refused with a sentence that names the argument, the rule and an example.
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
 * The JSON Schema of TOOL's arguments: made from its rows, members in their order, or
 * the one that TOOL brought. The caller owns it.
 */
struct value *schema_of_tool(const struct tool *tool);

/*
 * Parse the text that a model sent as arguments of TOOL. An empty text and null mean
 * {}. False: SENTENCE has the position, the first bytes and an example.
 */
bool schema_parse_arguments(const struct tool *tool, struct str json,
			    struct value **arguments, struct buf *sentence);

/*
 * Make ARGUMENTS fit SCHEMA, which is TOOL's (schema_of_tool), in place, then check
 * them. Aliases become names. Numbers and booleans sent as text, lists sent as JSON
 * text, and a single object in place of a list of objects are accepted. null for an
 * optional argument means that it is absent. Defaults are filled in. Numbers over their
 * ceiling become the ceiling, and CAPPED (NULL at first) records them. False: SENTENCE
 * is for the model.
 *
 * For a schema that TOOL brought, only two things are done before the check: null where
 * null is not allowed means absent, and a required member with a default is filled in.
 * No number is cut, and CAPPED may be NULL.
 */
bool schema_fit(const struct tool *tool, const struct value *schema,
		struct value *arguments, struct value **capped, struct buf *sentence);

/*
 * A number over its ceiling is replaced by the ceiling, and the answer reports it: a
 * model that asks for more than there is wants as much as possible. A number that names
 * something (PARAM_ID), and a value that is no number, are refused like any other wrong
 * value.
 */

/*
 * Cap the numbers of ARGUMENTS, nested lists included. CAPPED (NULL at first) becomes
 * an object from the name of an argument, or its JSON pointer inside a list, to {given,
 * used}. The caller owns it.
 */
void schema_cap(const struct tool *tool, struct value *arguments, struct value **capped);
/* Report CAPPED (or NULL) of a call of TOOL in RESULT's text and details. */
void schema_cap_tell(const struct tool *tool, const struct value *capped,
		     struct tool_result *result);

/* Repairs, before the check, those slips of a model that need no guess. */

/*
 * Repair OBJECT in place by ROWS, nested lists included. False when two names of one
 * argument have different values: SENTENCE then names both.
 */
bool schema_repair(const struct tool_param *rows, struct value *object,
		   struct buf *sentence);

/* Fill in absent members that have a default. */
void schema_fill_defaults(const struct tool_param *rows, struct value *object);
