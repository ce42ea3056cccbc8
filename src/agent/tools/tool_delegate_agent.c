/* delegate_agent: have another agent do a part of the work, and read its report. */
#include "agent/delegate.h"

enum { NAME_MAX_BYTES = 64, TASK_MAX = 64 << 10, CONTEXT_MAX = 256 << 10 };

/* Longer than any run; what ends it is its budget, its own limits, or its caller. */
#define DELEGATE_TIMEOUT_S (7.0 * 24 * 3600)

static const struct tool_param delegate_agent_params[] = {
	{"agent", PARAM_TEXT, true, "Whom, by the name that list_agents has", .min = 1,
	 .max = NAME_MAX_BYTES},
	{"task", PARAM_TEXT, true,
	 "What is to be done, and when it is done; it knows nothing of your conversation",
	 .aliases = "prompt", .min = 1, .max = TASK_MAX},
	{"context", PARAM_TEXT, false,
	 "What it should know besides: findings, decisions, files", .max = CONTEXT_MAX},
	{0},
};

static bool goes_beside(void *keeper, const struct value *arguments)
{
	const struct orchestra *orchestra = keeper;
	const char *agent = value_text(value_member(arguments, "agent"));

	return agent && orchestra->options.only_reads &&
	       orchestra->options.only_reads(orchestra->options.context,
					     orchestra_role(orchestra, agent));
}

const struct tool delegate_agent_tool = {
	.name = "delegate_agent",
	.description =
		"Have another agent do a task in a cell of its own, and get its report: what it "
		"said, how it ended, changed files, checks, usage. It has at most your rights "
		"and what is left of your budget. Several that only read may be asked in one "
		"answer: they work side by side.",
	.example = "{\"agent\": \"reviewer\", \"task\": \"Review src/parser.c for missing checks of "
		   "its input.\"}",
	.params = delegate_agent_params,
	.where = IN_FRONT,
	.timeout_s = DELEGATE_TIMEOUT_S,
	.goes_beside = goes_beside,
	.begin = delegations_begin,
	.stop = delegations_stop,
};
