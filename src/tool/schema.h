/*
 * schema: makes a JSON Schema of a tool's parameter rows, and makes the arguments of a
 * call fit it. A slip of the model whose meaning is clear is repaired; everything else
 * is refused with a sentence that names the argument, the rule and an example.
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
 * Make ARGUMENTS fit the rows of TOOL in place, then check them. Aliases become names.
 * Numbers and booleans sent as text, lists sent as JSON text, and a single object in
 * place of a list of objects are accepted. null for an optional argument means that it is
 * absent. Defaults are filled in. False: SENTENCE is for the model; it has the words that
 * validate would have for the schema of these rows.
 *
 * A number over its ceiling becomes the ceiling, and the answer reports it: a model that
 * asks for more than there is wants as much as possible. CAPPED (NULL at first) becomes
 * an object from the name of an argument, or its JSON pointer inside a list, to {given,
 * used}; the caller owns it. A number that names something (ROW_ID), and a value that is
 * no number, are refused like any other wrong value.
 *
 * For a schema that TOOL brought, only two things are done before the check: null where
 * null is not allowed means absent, and a required member with a default is filled in.
 * No number is cut, and CAPPED may be NULL.
 */
bool schema_fit(const struct tool *tool, struct value *arguments, struct value **capped,
		struct buf *sentence);

/* Report CAPPED (or NULL) of a call of TOOL in RESULT's text and details. */
void schema_cap_tell(const struct tool *tool, const struct value *capped,
		     struct tool_result *result);
