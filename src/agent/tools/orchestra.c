/*
 * orchestra: connects the front's tools with the run that they work for, and has the
 * functions that several of these tools need.
 */

#include "agent/tools/orchestra.h"

#include "agent/agent.h"
#include "agent/delegate.h"
#include "agent/tools/present_plan.h"
#include "agent/tools/todo.h"
#include "agent/tools/tool_search.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "base/value.h"
#include "store/journal.h"
#include "tool/call.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const struct tool *const orchestra_rows[ORCHESTRA_TOOLS + 1] = {
	&list_agents_tool,     &delegate_agent_tool,
	&shared_context_tool,  &query_reports_tool,
	&manage_schedule_tool, &todo_tool,
	&present_plan_tool,    &tool_search_tool,
	&call_tool_tool,       NULL,
};

struct orchestra *orchestra_open(const struct orchestra_options *options)
{
	struct orchestra *orchestra = memory_alloc(sizeof(*orchestra));

	orchestra->options = *options;
	for (size_t i = 0; i < ORCHESTRA_TOOLS; i++) {
		orchestra->tools[i] = *orchestra_rows[i];
		orchestra->tools[i].keeper = orchestra;
	}
	return orchestra;
}

void orchestra_close(struct orchestra *orchestra)
{
	if (!orchestra)
		return;
	delegate_calls_end(orchestra);
	free(orchestra->table_before);
	free(orchestra->table);
	free(orchestra);
}

/* Can TOOL be carried out here? Without a registry only those that know no other agent. */
static bool serves(const struct orchestra *orchestra, const struct tool *tool)
{
	return !(orchestra->options.alone && tool->in_runs) &&
	       !(orchestra->options.is_delegate && tool->plans) &&
	       !(tool->when_named && orchestra->options.registry == NULL);
}

const struct tool *const *orchestra_tools(struct orchestra *orchestra,
					  const struct tool *const *tools)
{
	size_t count = 0;

	while (tools[count])
		count++;
	free(orchestra->table_before);
	orchestra->table_before = orchestra->table;
	orchestra->table = memory_array(count + 1, sizeof(const struct tool *));
	for (size_t i = 0; i < count; i++) {
		orchestra->table[i] = tools[i];
		for (size_t j = 0; j < ORCHESTRA_TOOLS; j++) {
			if (tools[i] == orchestra_rows[j] && serves(orchestra, tools[i]))
				orchestra->table[i] = &orchestra->tools[j];
		}
	}
	return orchestra->table;
}

void orchestra_set_agent(struct orchestra *orchestra, struct agent *agent,
			 struct session *session, struct recorder *recorder)
{
	orchestra->agent = agent;
	orchestra->session = session;
	orchestra->recorder = recorder;
}

const struct orchestra *orchestra_of(const struct call *call)
{
	return call->tool->keeper;
}

const char *orchestra_session(const struct orchestra *orchestra)
{
	return orchestra->recorder ? recorder_session_id(orchestra->recorder) : "";
}

const char *orchestra_role(const struct orchestra *orchestra, const char *agent)
{
	const char *role = value_text(value_member(orchestra->options.other_names, agent));

	return role ? role : agent;
}

bool orchestra_writes(const struct orchestra *orchestra, const char *agent)
{
	return !orchestra->options.only_reads ||
	       !orchestra->options.only_reads(orchestra->options.context,
					      orchestra_role(orchestra, agent));
}

/* Does the cell of the run know layers? */
static bool has_layers(const struct orchestra *orchestra)
{
	return orchestra->session &&
	       session_strength(orchestra->session).level == SANDBOX_SEALED;
}

bool orchestra_layers(const struct orchestra *orchestra)
{
	return (orchestra->options.writers > 1 || orchestra->options.layered) &&
	       has_layers(orchestra);
}

const struct value *orchestra_find(const struct orchestra *orchestra, const char *agent)
{
	const char *role = orchestra_role(orchestra, agent);
	const struct value *registry = orchestra->options.registry;

	for (size_t i = 0; i < value_count(registry); i++) {
		const struct value *row = value_item(registry, i);

		if (str_is(value_str(value_member(row, "name")), role))
			return row;
	}
	return NULL;
}

void orchestra_add_names(const struct orchestra *orchestra, struct buf *out)
{
	const struct value *registry = orchestra->options.registry;

	for (size_t i = 0; i < value_count(registry); i++)
		(void)buf_addf(out, "%s%s", i > 0 ? ", " : "",
			       value_text(value_member(value_item(registry, i), "name")));
	if (value_count(registry) == 0)
		(void)buf_adds(out, "none");
}

static void add_list(const char *heading, const struct value *list, const char *none,
		     struct buf *out)
{
	(void)buf_addf(out, "  %s: ", heading);
	for (size_t i = 0; i < value_count(list); i++) {
		(void)buf_adds(out, i > 0 ? ", " : "");
		text_add_name(out, value_str(value_item(list, i)));
	}
	(void)buf_addf(out, "%s\n", value_count(list) == 0 ? none : "");
}

void orchestra_describe(const struct value *registry, struct buf *out)
{
	for (size_t i = 0; i < value_count(registry); i++) {
		const struct value *row = value_item(registry, i);

		(void)buf_addf(out, "- %s: ", value_text(value_member(row, "name")));
		text_add_name(out, value_str(value_member(row, "description")));
		(void)buf_addc(out, '\n');
		add_list("tools", value_member(row, "tools"), "none", out);
		add_list("writes", value_member(row, "write"), "nothing", out);
	}
}

void orchestra_add_time(int64_t wall_ms, struct buf *out)
{
	const time_t seconds = (time_t)(wall_ms / 1000);
	char text[32] = "";
	struct tm utc;

	if (gmtime_r(&seconds, &utc))
		(void)strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &utc);
	(void)buf_adds(out, text);
}

void orchestra_quote(struct str text, struct buf *out)
{
	struct buf clean;
	struct str rest, line;

	buf_init(&clean, 4 * text.size + 1); /* \xHH for every byte */
	(void)text_clean(text, &clean);
	rest = buf_str(&clean);
	while (str_next_line(&rest, &line)) {
		(void)buf_adds(out, "| ");
		(void)buf_addstr(out, line);
		(void)buf_addc(out, '\n');
	}
	buf_fini(&clean);
}

/* The tool that lists the agents to which tasks can be delegated. */

static const struct row list_agents_params[] = {{0}};

static enum result_status list_agents_execute(struct call *call, struct tool_result *result)
{
	const struct value *registry = orchestra_of(call)->options.registry;

	if (value_count(registry) == 0)
		(void)buf_adds(&result->text,
			       "There is no agent that you may delegate to.\n");
	orchestra_describe(registry, &result->text);
	value_set(tool_details(result), "agents", value_copy(registry));
	return tool_done(result);
}

const struct tool list_agents_tool = {
	.name = "list_agents",
	.description = "List the agents that tasks can be delegated to: what each is for, its "
		       "tools, and where it may write.",
	.example = "{}",
	.params = list_agents_params,
	.where = IN_FRONT,
	.when_named = true,
	.timeout_s = 10,
	.execute = list_agents_execute,
};

/* The tool that gives a task to another agent and returns its report. */

enum { NAME_MAX_BYTES = 64, TASK_MAX = 64 << 10, CONTEXT_MAX = 256 << 10 };

/*
 * Longer than any run. A run is ended earlier by its budget, its own limits, or its
 * caller.
 */
#define DELEGATE_TIMEOUT_S (7.0 * 24 * 3600)

static const struct row delegate_agent_params[] = {
	{"agent", ROW_TEXT, true, "Whom, by the name that list_agents has", .min = 1,
	 .max = NAME_MAX_BYTES},
	{"task", ROW_TEXT, true,
	 "What is to be done, and when it is done; it knows nothing of your conversation",
	 .aliases = "prompt", .min = 1, .max = TASK_MAX},
	{"context", ROW_TEXT, false,
	 "What it should know besides: findings, decisions, files", .max = CONTEXT_MAX},
	{0},
};

static bool goes_beside(void *keeper, const struct value *arguments)
{
	const struct orchestra *orchestra = keeper;
	const char *agent = value_text(value_member(arguments, "agent"));

	return agent && (!orchestra_writes(orchestra, agent) ||
			 (orchestra->options.writers > 1 && has_layers(orchestra)));
}

const struct tool delegate_agent_tool = {
	.name = "delegate_agent",
	.description =
		"Have another agent do a task in a cell of its own, and get its report: what it "
		"said, how it ended, changed files, checks, usage. It has at most your rights "
		"and what is left of your budget. Several that only read may be asked in one "
		"answer: they work side by side. So do several that write where limits.writers "
		"allows it; what each has changed is then put into the workspace in the order "
		"of the calls.",
	.example = "{\"agent\": \"reviewer\", \"task\": \"Review src/parser.c for missing checks of "
		   "its input.\"}",
	.params = delegate_agent_params,
	.where = IN_FRONT,
	.when_named = true,
	.in_runs = true,
	.timeout_s = DELEGATE_TIMEOUT_S,
	.goes_beside = goes_beside,
	.begin = delegate_calls_begin,
	.stop = delegate_calls_stop,
};
