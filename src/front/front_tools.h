/* front_tools: the tools that the program brings along: the built-in ones and the orchestra's. */
#pragma once
#include "tool/tool.h"

/* NULL-ended; the caller frees the list. */
const struct tool **front_tools_new(void);
