/*
 * tools: the table of built-in tools. A tool is one file and one row of tools.def.
 *
 * The session does not know this table; a front hands it in. The C library
 * (src/library/) is therefore a layer of its own above the tools.
 */
#pragma once
#include "tool/tool.h"

#include <stddef.h>

/* Each tool of the table by its name: read_file_tool. */
#define TOOL(name, file) extern const struct tool name##_tool;
#include "tools/tools.def"
#undef TOOL

extern const struct tool *const builtin_tools[]; /* NULL-ended */

/*
 * The place in a workspace, after INDEX others, that the tool read_brought looks at;
 * NULL: there is none.
 */
const char *tools_brought_place(size_t index);
/* Most files of a skill. */
enum { READ_BROUGHT_FILES_MAX = 1000 };
