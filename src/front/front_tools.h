/* front_tools: the tools of the program itself: the built-in ones and the orchestra's. */
#pragma once
#include "tool/tool.h"

/* NULL-ended; the caller frees the list. */
const struct tool **front_tools_new(void);
