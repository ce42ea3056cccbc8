/*
 * tool_search: the two tools that stand for the deferred tools of servers (tool/deferred.h).
 * `tool_search` finds their definitions. `call_tool` is only a way to say which tool is meant:
 * the loop takes the call that it contains out of it (tool_search_meant) before anything else looks
 * at it, so hooks, the policy, the person and the record know the real tool alone. Only the
 * conversation of the model has its call of call_tool; the record notes it as `through`
 * (docs/events.md), from which a resumed conversation has it again.
 */
#pragma once

#include "base/buf.h"
#include "base/value.h"
#include "model/conversation.h"
#include "tool/tool.h"

extern const struct tool tool_search_tool, call_tool_tool;

/* The call that a part of a model's answer means. */
struct meant {
	const char *tool, *arguments; /* valid as long as PART and this structure */
	struct value *within;         /* the arguments of call_tool; owned; or NULL */
	struct buf printed;
};

/*
 * The call that PART, a call, means: its own, or the one in its arguments where it is one of
 * call_tool. Arguments of call_tool that do not fit leave it as it is; the session refuses them.
 * Call meant_fini afterwards.
 */
void tool_search_meant(const struct part *part, struct meant *meant);
void meant_fini(struct meant *meant);
/* The arguments of a call_tool that means TOOL with ARGUMENTS, as text; the caller frees it. */
char *tool_search_arguments(const char *tool, const char *arguments);

/* Append for a model which tools of TOOLS (NULL-ended) are deferred; nothing when none is. */
void tool_search_prompt(const struct tool *const *tools, struct buf *out);
