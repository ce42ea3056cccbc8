/* list_agents: who can be delegated to. */
#include "agent/tools/orchestra_parts.h"

static const struct tool_param list_agents_params[] = {{0}};

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
	.timeout_s = 10,
	.execute = list_agents_execute,
};
