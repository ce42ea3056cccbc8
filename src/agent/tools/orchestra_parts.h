/* orchestra_parts: what the tools of the front share; for orchestra.c and tool_*.c only. */
#pragma once
#include "agent/tools/orchestra.h"
#include "tool/call.h"

#include <stdint.h>

extern const struct tool list_agents_tool, delegate_agent_tool, shared_context_tool,
	query_reports_tool, manage_schedule_tool;

enum { ORCHESTRA_TOOLS = 5 };

struct delegation; /* one call of delegate_agent */

struct orchestra {
	struct orchestra_options options;
	struct tool tools[ORCHESTRA_TOOLS];
	const struct tool **table, **table_before;
	struct agent *agent;
	struct session *session;
	struct recorder *recorder;
	struct delegation *first; /* under way */
	int64_t end_by_ms; /* when all of them are to have ended; 0: nobody asked for it */
};

/* Whom CALL works for. */
const struct orchestra *orchestra_of(const struct call *call);
/* The session of the run in the journal; "" without one. */
const char *orchestra_session(const struct orchestra *orchestra);

/* The name of the role that AGENT names, as the registry has it: AGENT, or its role's. */
const char *orchestra_role(const struct orchestra *orchestra, const char *agent);
/* The row of AGENT, by either name, in the registry, or NULL. */
const struct value *orchestra_find(const struct orchestra *orchestra, const char *agent);
/* Append the names in the registry: "coder, tester". */
void orchestra_add_names(const struct orchestra *orchestra, struct buf *out);

/* Append MOMENT (ms since 1970) as "2026-11-23 09:00:00 UTC". */
void orchestra_add_time(int64_t wall_ms, struct buf *out);
/* Append TEXT with "| " before each line: data of others, which cannot end its own frame. */
void orchestra_quote(struct str text, struct buf *out);
