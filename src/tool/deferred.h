/*
 * deferred: tools of servers whose definitions a model is not told, because many of them would
 * fill its context. It reads their names, finds the definitions by `tool_search` and calls the
 * tools by `call_tool` (agent/tools/tool_search.h). What is deferred follows from the list of
 * tools alone, so that the same list gives the same requests.
 */
#pragma once

#include "tool/tool.h"

#include <stdbool.h>

/*
 * More tools of servers than this, or more bytes of their definitions (8,000 tokens), are
 * deferred, all of them (DEFER_AUTO).
 */
enum { DEFERRED_TOOLS_MAX = 20, DEFERRED_BYTES_MAX = 32000 };

/* The deferred part of a list of tools. */
struct deferred {
	bool automatic; /* the tools of DEFER_AUTO are */
	bool any;       /* there is a tool that is */
};
struct deferred deferred_of(const struct tool *const *tools);
bool deferred_has(struct deferred deferred, const struct tool *tool);
