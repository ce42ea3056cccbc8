/* schema_parts: what rows mean, for schema.c and schema_fit.c. */
#pragma once
#include "tool/tool.h"

#include <stdbool.h>

/* Do `min` and `max` of ROW bound something? */
bool schema_has_bounds(const struct tool_param *row);
/* Is ROW the deadline of a call of TOOL, which has a ceiling of its own? */
bool schema_is_deadline(const struct tool_param *row, const struct tool *tool);
