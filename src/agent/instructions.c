/*
 * instructions: what the project's own files tell agents (AGENTS.md), read by a tool inside the
 * cell, kept as an event, said to the model behind the role's prompt.
 */
#include "agent/turn.h"
#include "policy/policy.h"

#include <string.h>

/* Two files of some kilobytes; a file system that hangs must not keep the agent from work. */
static const double instructions_timeout_s = 5;

static const char instructions_begin[] =
	"\n\nThe project brings instructions for agents, in the files named below. Follow them "
	"where they do not contradict what stands above or what the user says; of two files, the "
	"one in the deeper folder. Before you work in a folder below, look whether it has an "
	"AGENTS.md of its own.\n\n";

/* The folder of the agent's base, below the workspace. */
static const char *instructions_leaf(const struct session *session)
{
	const char *workspace = session_workspace(session);
	const char *base = session_policy(session)->base.path;
	size_t length = strlen(workspace);

	if (!base || strncmp(base, workspace, length) != 0 || base[length] != '/')
		return ".";
	return base + length + 1;
}

static bool instructions_take(struct agent *agent, const struct tool_result *result,
			      struct err *err)
{
	const char *had = agent->history.instructions;
	struct event event = {
		.kind = EVENT_INSTRUCTIONS,
		.text = buf_str(&result->text),
		.data = result->details,
	};

	if (str_is(event.text, had ? had : "") &&
	    value_count(value_member(result->details, "skipped")) == 0)
		return true;
	return recorder_event(agent->options.recorder, &event, err);
}

static bool instructions_refused(struct agent *agent, const struct tool_result *result,
				 struct err *err)
{
	struct buf sentence;
	bool recorded;

	buf_init(&sentence, 2 * ERR_TEXT_MAX);
	buf_adds(&sentence, "The project's instructions (AGENTS.md) were not read: ");
	buf_addstr(&sentence, str_part(buf_str(&result->text), 0, ERR_TEXT_MAX));
	recorded = agent_notice(agent, sentence.data, false, err);
	buf_fini(&sentence);
	return recorded;
}

bool instructions_read(struct agent *agent, struct err *err)
{
	struct session *session = agent->options.session;
	auto_value struct value *arguments = value_new_object();
	const struct request request = {
		.tool = "read_instructions",
		.arguments = arguments,
		.by_front = true,
		.quiet = true,
		.timeout_s = instructions_timeout_s,
	};
	struct tool_result result;
	bool recorded;

	value_set_text(arguments, "leaf", instructions_leaf(session));
	tool_result_init(&result);
	session_call(session, &request, &result);
	if (result.status == RESULT_DONE)
		recorded = instructions_take(agent, &result, err);
	else
		recorded = instructions_refused(agent, &result, err);
	tool_result_fini(&result);
	return recorded;
}

void instructions_add(const struct agent *agent, struct buf *text)
{
	if (!agent->history.instructions)
		return;
	buf_adds(text, instructions_begin);
	buf_adds(text, agent->history.instructions);
}
