/*
 * orchestra: what the tools of the front share in one run: list_agents, delegate_agent,
 * shared_context, query_reports, manage_schedule (docs/orchestration.md). Each is a file
 * tool_NAME.c with its rows; they touch no file of the workspace and are offered to agents
 * that name them. Here they get a run to work for; all but delegate_agent do without.
 */
#pragma once
#include "agent/agent.h"
#include "base/value.h"
#include "store/journal.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	 * The request for a delegate's process (delegate_role.h), without the members
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
