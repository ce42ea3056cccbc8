/*
 * todo: the list of tasks that an agent keeps while it works. Each call of the tool brings
 * the whole list, and the newest list is that of the session: it stands in the result's
 * details as `todo`, so the record has it and a resumed session goes on with it
 * (agent/history.h). The model reads it again behind every summary of its conversation.
 */
#pragma once

#include "base/buf.h"
#include "base/value.h"
#include "tool/tool.h"

/* A longer list is a plan of several sessions, and nobody reads it at each step. */
enum { TODO_ITEMS_MAX = 20, TODO_TEXT_MAX = 200 };

extern const struct tool todo_tool;

/* Append ITEMS, the list in the details, with a line and a mark for each task. */
void todo_print(const struct value *items, struct buf *out);
