/* hooks: asks the hooks of an agent, and records what they answer. */

#include "agent/hooks.h"

#include "agent/agent.h"
#include "agent/history.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "session/session.h"
#include "tool/event.h"

#include <stdbool.h>
#include <string.h>

/* Texts of several hooks that each may print 64 KiB. */
enum { ANSWER_TEXT_MAX = 1 << 20 };

static const char *const kinds[] = {
	[HOOK_SESSION_BEGAN] = "SessionStart",       [HOOK_SESSION_ENDED] = "SessionEnd",
	[HOOK_PROMPT] = "UserPromptSubmit",          [HOOK_BEFORE_CALL] = "PreToolUse",
	[HOOK_PERMISSION] = "PermissionRequest",     [HOOK_AFTER_CALL] = "PostToolUse",
	[HOOK_AFTER_FAILURE] = "PostToolUseFailure", [HOOK_STOP] = "Stop",
	[HOOK_DELEGATE_STOP] = "SubagentStop",       [HOOK_COMPACTION] = "PreCompact",
	[HOOK_NOTIFICATION] = "Notification",
};

const char *hook_kind_name(enum hook_kind kind)
{
	return kinds[kind];
}

bool hook_kind_parse(const char *name, enum hook_kind *kind)
{
	for (size_t i = 0; i < HOOK_KINDS; i++) {
		if (strcmp(kinds[i], name) == 0) {
			*kind = (enum hook_kind)i;
			return true;
		}
	}
	return false;
}

const char *hook_decision_name(enum hook_decision decision)
{
	static const char *const names[] = {
		[HOOK_SILENT] = "silent",
		[HOOK_ALLOW] = "allow",
		[HOOK_ASK] = "ask",
		[HOOK_DENY] = "deny",
	};

	return names[decision];
}

void hook_answer_init(struct hook_answer *answer)
{
	*answer = (struct hook_answer){0};
	buf_init(&answer->by, ANSWER_TEXT_MAX);
	buf_init(&answer->reason, ANSWER_TEXT_MAX);
	buf_init(&answer->context, ANSWER_TEXT_MAX);
	buf_init(&answer->told, ANSWER_TEXT_MAX);
	buf_init(&answer->shown, RESULT_TEXT_MAX);
}

void hook_answer_fini(struct hook_answer *answer)
{
	buf_fini(&answer->by);
	buf_fini(&answer->reason);
	buf_fini(&answer->context);
	buf_fini(&answer->told);
	buf_fini(&answer->shown);
	value_free(answer->arguments);
}

/*
 * May a text join the conversation at this moment? Else a prompt or results of calls come
 * before it.
 */
static bool joins_now(enum hook_kind kind)
{
	return kind == HOOK_SESSION_BEGAN;
}

static bool record(struct agent *agent, const struct hook_moment *moment,
		   const struct hook_answer *answer, struct err *err)
{
	auto_value struct value *data = value_new_object();
	struct event event = {
		.kind = EVENT_HOOK,
		.call = moment->call,
		.tool = moment->tool != NULL ? moment->tool->name : NULL,
		.text = joins_now(moment->kind) ? buf_str(&answer->context) : STR(""),
		.data = data,
	};

	const bool decides = answer->decision != HOOK_SILENT || answer->ends ||
			     answer->arguments != NULL;

	/* A text that is only added is recorded when it joins the conversation. */
	if (answer->by.size == 0 || (!decides && event.text.size == 0))
		return true;
	value_set_text(data, "hook", hook_kind_name(moment->kind));
	value_set_str(data, "by", buf_str(&answer->by));
	value_set_text(data, "decision", hook_decision_name(answer->decision));
	if (answer->reason.size > 0)
		value_set_str(data, "reason", buf_str(&answer->reason));
	if (answer->ends)
		value_set_boolean(data, "ends", true);
	if (answer->arguments != NULL)
		value_set(data, "arguments", value_ref(answer->arguments));
	return recorder_event(agent->options.recorder, &event, err);
}

/* Keep what ANSWER adds to the conversation for agent_hooks_flush. */
static void hold(struct turn *turn, const struct hook_moment *moment,
		 const struct hook_answer *answer)
{
	struct value *row;

	if (joins_now(moment->kind) || answer->context.size == 0 || turn == NULL)
		return;
	row = value_new_object();
	value_set_text(row, "hook", hook_kind_name(moment->kind));
	value_set_str(row, "by", buf_str(&answer->by));
	if (moment->call != NULL)
		value_set_text(row, "call", moment->call);
	if (moment->tool != NULL)
		value_set_text(row, "tool", moment->tool->name);
	value_set_str(row, "text", buf_str(&answer->context));
	if (turn->hooks_said == NULL)
		turn->hooks_said = value_new_array();
	value_append(turn->hooks_said, row);
}

bool agent_hooks_flush(struct agent *agent, struct turn *turn, struct err *err)
{
	auto_value struct value *said = turn->hooks_said;

	turn->hooks_said = NULL;
	for (size_t i = 0; i < value_count(said); i++) {
		const struct value *row = value_item(said, i);
		auto_value struct value *data = value_new_object();
		struct event event = {
			.kind = EVENT_HOOK,
			.call = value_text(value_member(row, "call")),
			.tool = value_text(value_member(row, "tool")),
			.text = value_str(value_member(row, "text")),
			.data = data,
		};

		value_set(data, "hook", value_ref(value_member(row, "hook")));
		value_set(data, "by", value_ref(value_member(row, "by")));
		if (!recorder_event(agent->options.recorder, &event, err))
			return false;
	}
	return true;
}

static bool tell(struct agent *agent, const struct hook_answer *answer, struct err *err)
{
	struct str rest = buf_str(&answer->told), line;
	struct buf sentence;
	bool recorded = true;

	buf_init(&sentence, ANSWER_TEXT_MAX);
	while (recorded && str_next_line(&rest, &line)) {
		buf_clear(&sentence);
		(void)buf_addstr(&sentence, line);
		recorded = line.size == 0 || agent_notice(agent, sentence.data, false, err);
	}
	buf_fini(&sentence);
	return recorded;
}

bool agent_hooks_ask(struct agent *agent, struct hook_moment *moment,
		     struct hook_answer *answer, struct err *err)
{
	const struct agent_hooks *hooks = agent->options.hooks;

	moment->session = agent->options.session;
	moment->session_id = recorder_session_id(agent->options.recorder);
	moment->agent_name = agent->options.name;
	moment->conversation = &agent->history.conversation;
	for (; hooks != NULL && answer->decision != HOOK_DENY; hooks = hooks->next) {
		hooks->ask(hooks->context, moment, answer);
		if (answer->arguments != NULL)
			moment->arguments = answer->arguments;
	}
	hold(agent->turn, moment, answer);
	return record(agent, moment, answer, err) && tell(agent, answer, err);
}
