/*
 * orchestra: the data that some tools of the front share in one run. These tools are
 * list_agents, delegate_agent, shared_context, query_reports and manage_schedule
 * (docs/orchestration.md), which are offered to agents that name them, and todo, which
 * every run has. They touch no file of the workspace. This module gives them a run to work
 * for; delegate_agent and todo cannot work without one.
 *
 * The tools are IN_FRONT: this module carries them out in a run, for an MCP client and
 * for a single call. It carries out delegate_agent in a run only, because a delegate
 * shares the run's budget and session; a list of tasks is the run's own. A new tool is one file in agent/tools/ and one
 * row in orchestra.c.
 */
#pragma once

#include "agent/agent.h"
#include "base/value.h"
#include "session/review.h"
#include "store/journal.h"
#include "tool/call.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct delegation; /* one call of delegate_agent */
struct orchestra;

/* The rows of these tools without a run, for listings and checks. NULL-ended. */
extern const struct tool *const orchestra_rows[];

/* How deep delegates may delegate; the agent that the person started is at 0. */
enum { ORCHESTRA_DEPTH_MAX = 3 };

/* The name of a layer (view/review.h) and the NUL, and where layers are in the view. */
enum { ORCHESTRA_LAYER = 9 };
#define ORCHESTRA_LAYERS REVIEW_SHOWN

/* All members are borrowed for the orchestra's life. */
struct orchestra_options {
	const char *workspace; /* real, absolute */
	const char *agent;     /* of this run */
	/*
	 * The agents that this agent may delegate to: a list of {name, description,
	 * tools, write}. NULL: only the tools work that every run has.
	 */
	const struct value *registry;
	/* The other name of a shipped role -> this role's name in the registry. */
	const struct value *other_names;
	/*
	 * The agents from the one that the person started down to this one, by their
	 * names in the registry.
	 */
	const struct value *chain;
	/*
	 * The request for a delegate's process (front/talk.h), without the members that
	 * differ from call to call: agent, task, parent, budget.
	 */
	const struct value *request;
	/*
	 * Does AGENT only read? False for an agent that may change files, run commands or
	 * delegate.
	 */
	bool (*only_reads)(void *context, const char *agent);
	/*
	 * More than 1: so many delegates that write work side by side, each in a layer of its
	 * own. With `layered` each has one in any case, over that of this run. layer_new names
	 * the layer of one that is about to begin. layer_left is called
	 * when it has ended: is anything of its layer left, which a person lands or drops?
	 * layer_show shows the layer in the cell of this run, below ORCHESTRA_LAYERS.
	 */
	uint64_t writers;
	bool (*layer_new)(void *context, const char *agent, char id[ORCHESTRA_LAYER]);
	bool (*layer_left)(void *context, const char *id);
	bool (*layer_show)(void *context, struct session *session, const char *id);
	/*
	 * This run works in a layer itself, into which it lands those of its delegates:
	 * layer_land does so, and puts the event of the landing, a line, into LINE.
	 */
	bool layered;
	bool (*layer_land)(void *context, struct session *session, const char *id,
			   struct buf *line);
	void *context;
	/*
	 * There is no run, only one call or those of an MCP client: the tools of runs
	 * (tool.h) do not work.
	 */
	bool alone;
	/* Another agent has started this run: its plan is for that one, and not for a person. */
	bool is_delegate;
	/* --max-iterations holds for all answers of this run, those of delegates included. */
	bool counts_answers;
};

struct orchestra *orchestra_open(const struct orchestra_options *options);
void orchestra_close(struct orchestra *orchestra); /* ends all delegates; NULL is fine */

/*
 * TOOLS (NULL-ended) with the orchestra's own tools in the places of the rows above;
 * NULL-ended. The table is valid until the second call of this function from now, the
 * tools in it as long as the orchestra.
 */
const struct tool *const *orchestra_tools(struct orchestra *orchestra,
					  const struct tool *const *tools);

/*
 * Tell the orchestra, before the first turn, which agent has the run. RECORDER is the one
 * with which AGENT was opened.
 */
void orchestra_set_agent(struct orchestra *orchestra, struct agent *agent,
			 struct session *session, struct recorder *recorder);

/* Append REGISTRY (of the options) as a list for a model. */
void orchestra_describe(const struct value *registry, struct buf *out);

/* Shared by the files of these tools and delegate.c only. */

extern const struct tool list_agents_tool, delegate_agent_tool, shared_context_tool,
	query_reports_tool, manage_schedule_tool;

enum { ORCHESTRA_TOOLS = 9 };

struct orchestra {
	struct orchestra_options options;
	struct tool tools[ORCHESTRA_TOOLS];
	const struct tool **table, **table_before;
	struct agent *agent;
	struct session *session;
	struct recorder *recorder;
	struct delegation *first; /* those under way, in the order of their calls */
	/* when all delegates must have ended; 0: nobody asked for it */
	int64_t end_by_ms;
};

/* The orchestra that CALL works for. */
const struct orchestra *orchestra_of(const struct call *call);
/* The session of the run in the journal; "" without one. */
const char *orchestra_session(const struct orchestra *orchestra);

/*
 * The role of AGENT as the registry names it: AGENT itself, or the role that has this
 * other name.
 */
const char *orchestra_role(const struct orchestra *orchestra, const char *agent);
/*
 * The row of AGENT in the registry, by its name or its other name; NULL: there is none.
 */
const struct value *orchestra_find(const struct orchestra *orchestra, const char *agent);
/* May AGENT change something? */
bool orchestra_writes(const struct orchestra *orchestra, const char *agent);
/* Do delegates that write work in layers? */
bool orchestra_layers(const struct orchestra *orchestra);
/* Append the names in the registry: "coder, tester". */
void orchestra_add_names(const struct orchestra *orchestra, struct buf *out);

/* Append WALL_MS (ms since 1970) as "2026-11-23 09:00:00 UTC". */
void orchestra_add_time(int64_t wall_ms, struct buf *out);
/*
 * Append TEXT with "| " before each line, so that this foreign text cannot end its own
 * frame.
 */
void orchestra_quote(struct str text, struct buf *out);
