/* tools: the table of built-in tools. */
#include "tools/tools.h"

#include <stddef.h>

const struct tool *const builtin_tools[] = {
#define TOOL(name, file) &name##_tool,
#include "tools/tools.def"
#undef TOOL
	NULL,
};
