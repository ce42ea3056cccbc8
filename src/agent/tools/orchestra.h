/*
 * orchestra: what the tools of the front share in one run: list_agents,
 * delegate_agent, shared_context, query_reports, manage_schedule
 * (docs/orchestration.md). They touch no file of the workspace and are offered to
 * agents that name them. Here they get a run to work for; all but delegate_agent do
 * without.
 *
 * The tools are IN_FRONT: this module stands behind them in a run, for an MCP client
 * and for one call. It stands behind delegate_agent in a run only, because a delegate
 * shares budget and session. A new tool is one file in agent/tools/ and one row in
 * orchestra.c.
 */
#pragma once

#include "agent/agent.h"
#include "base/value.h"
#include "store/journal.h"
#include "tool/call.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct delegation; /* one call of delegate_agent */
struct orchestra;

/* Their rows, without anybody behind them: for listings and checks. NULL-ended. */
extern const struct tool *const orchestra_rows[];

/* Delegates of delegates; the one that the person started is at 0. */
enum { ORCHESTRA_DEPTH_MAX = 3 };

/* All borrowed for the orchestra's life. */
struct orchestra_options {
	const char *workspace; /* real, absolute */
	const char *agent;     /* of this run */
	/*
	 * The agents that this agent may delegate to: a list of {name, description,
	 * tools, write}.
	 */
	const struct value *registry;
	/* Other name of a shipped role -> that role, as the registry has it. */
	const struct value *other_names;
	/* Agents from the one that the person started down to this one, as the registry has them. */
	const struct value *chain;
	/*
	 * The request for a delegate's process (agents.h), without the members
	 * that differ from call to call: agent, task, parent, budget.
	 */
	const struct value *request;
	/* Does an agent by itself, or one it may delegate to, change files or run commands? */
	bool (*only_reads)(void *context, const char *agent);
	void *context;
	/* There is no run: one call, or those of an MCP client. Nobody is behind delegate_agent. */
	bool alone;
	/* --max-iterations holds for all answers of this run, those of delegates included. */
	bool counts_answers;
};

struct orchestra *orchestra_open(const struct orchestra_options *options);
void orchestra_close(struct orchestra *orchestra); /* ends all delegates; NULL is fine */

/*
 * TOOLS (NULL-ended) with its own in the places of the rows above; NULL-ended. The table is valid
 * until the second call from now, the tools in it as long as the orchestra.
 */
const struct tool *const *orchestra_tools(struct orchestra *orchestra,
					  const struct tool *const *tools);

/* The agent whose run it is, before its first turn; RECORDER is the one it was opened with. */
void orchestra_set_agent(struct orchestra *orchestra, struct agent *agent,
			 struct session *session, struct recorder *recorder);

/* Append REGISTRY (of the options) as a list for a model. */
void orchestra_describe(const struct value *registry, struct buf *out);

/* What the tools of the front share; for orchestra.c and tool_*.c only. */

extern const struct tool list_agents_tool, delegate_agent_tool, shared_context_tool,
	query_reports_tool, manage_schedule_tool;

enum { ORCHESTRA_TOOLS = 5 };

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
