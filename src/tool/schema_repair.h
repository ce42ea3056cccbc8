/*
 * schema_repair: what of a model's slips can be put right without a guess, before the
 * check.
 */
#pragma once
#include "base/buf.h"
#include "base/value.h"
#include "tool/tool.h"

#include <stdbool.h>

/*
 * Repair OBJECT in place by ROWS, nested lists included. False when two names of one
 * argument contradict each other: SENTENCE then names both.
 */
bool schema_repair(const struct tool_param *rows, struct value *object,
		   struct buf *sentence);

/* Fill in what is absent and has a default. */
void schema_fill_defaults(const struct tool_param *rows, struct value *object);
