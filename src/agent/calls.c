/*
 * calls: runs the calls of a model's answer. Every call is answered, even when the turn is
 * interrupted.
 */

#include "agent/agent.h"
#include "agent/tools/tool_search.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/value.h"
#include "session/approval.h"
#include "tool/call.h"
#include "tool/schema.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The most calls under way at the same time: twice the workers of a small machine. More
 * calls would only queue.
 */
enum { CALLS_SIDE_BY_SIDE = 8 };

/* Never 0, because 0 means that there is no limit. */
static const double calls_shortest_s = 0.001;

struct asked {
	struct agent *agent;
	struct turn *turn;
	const struct part *part;
	struct meant meant;      /* the call, as it is from here on */
	const struct tool *tool; /* NULL: no tool has this name */
	struct circle_call call;
	struct running *running; /* NULL: a hook has refused the call */
	struct value *arguments; /* as validated, or as a hook changed them; owned; or NULL */
	struct hook_answer hooks; /* of HOOK_BEFORE_CALL */
};

/* Does a call of TOOL use up the time for commands? A question to a job does not. */
static bool calls_runs(const struct tool *tool)
{
	return tool->where == IN_CELL && (tool->effects & EFFECT_RUNS) != 0;
}

/* Seconds of the turn that are left for the call ASKED; 0: no limit. */
static double calls_most_s(const struct turn *turn, const struct asked *asked)
{
	bool runs = asked->tool && calls_runs(asked->tool);
	double left = limits_left_s(&turn->limits, clock_now_ms(), runs);

	if (isinf(left))
		return 0;
	return left > calls_shortest_s ? left : calls_shortest_s;
}

bool agent_calls_answer(struct agent *agent, const char *call, const char *tool,
			enum result_status status, const char *text, struct err *err)
{
	struct event event = {.kind = EVENT_TOOL_ENDED, .call = call, .tool = tool};
	auto_value struct value *data = NULL;
	struct tool_result result;

	tool_result_init(&result);
	result.status = status;
	result.strength = session_strength(agent->options.session);
	buf_adds(&result.text, text);
	data = tool_result_value(&result);
	tool_result_fini(&result);
	event.data = data;
	return recorder_event(agent->options.recorder, &event, err);
}

/* The answer to a call that was never started. */
static bool calls_refuse(struct agent *agent, const struct turn *turn,
			 const struct asked *asked, struct err *err)
{
	bool cancelled = turn->outcome->reason == AGENT_CANCELLED;
	char text[sizeof("Not run: ") + ERR_TEXT_MAX];

	(void)snprintf(text, sizeof(text), "Not run: %s", turn->outcome->sentence);
	return agent_calls_answer(agent, asked->part->call_id, asked->meant.tool,
				  cancelled ? RESULT_CANCELLED : RESULT_FAILED, text, err);
}

/* Note in TURN the facts of RESULT that matter for the rest of the turn. */
static void calls_note(struct turn *turn, const struct tool *tool,
		       const struct tool_result *result)
{
	bool ran = result->status != RESULT_FAILED && result->status != RESULT_DENIED;

	if (calls_runs(tool) && ran) {
		turn->limits.shell_seconds += result->seconds;
		turn->outcome->last_exit_code = result->exit_code;
	}
	agent_handover_take(turn, tool, result);
	agent_checks_note(turn, tool, result);
}

/*
 * Before the result is reported, it gets the text that stands for its own, and the detector
 * of circles may add a remark to it.
 */
static void calls_ending(void *context, struct tool_result *result)
{
	struct asked *asked = context;
	struct session_writes writes;

	if (asked->hooks.shown.size > 0 && result->status == RESULT_DONE)
		buf_swap(&result->text, &asked->hooks.shown);
	session_writes(asked->agent->options.session, &writes);
	circle_result(&asked->turn->circle, &asked->call, &writes, result);
}

/* Start those of COUNT calls that no hook has refused, and wait for all of them. */
static void calls_wait(struct agent *agent, struct turn *turn, struct asked *asked,
		       size_t count)
{
	struct session *session = agent->options.session;
	struct session_writes writes;
	size_t done = 0;

	session_writes(session, &writes);
	for (size_t i = 0; i < count; i++) {
		const struct hook_answer *hooks = &asked[i].hooks;
		const struct request request = {
			.tool = asked[i].meant.tool,
			.arguments = hooks->arguments,
			.arguments_text = str_of(asked[i].meant.arguments),
			.id = asked[i].part->call_id,
			.asks_for = hooks->decision == HOOK_ASK ? hooks->reason.data : NULL,
			.most_s = calls_most_s(turn, &asked[i]),
			.ending = calls_ending,
		};

		if (hooks->decision == HOOK_DENY)
			continue;
		asked[i].call.writers = writes.writers;
		asked[i].running = session_start(session, &request, NULL, &asked[i]);
	}
	while (done < count) {
		if (asked[done].running == NULL || running_is_done(asked[done].running))
			done++;
		else
			loop_turn(session_loop(session), CLOCK_NEVER);
	}
}

static void calls_settle(struct turn *turn, const struct asked *asked)
{
	const struct tool_result *result = running_result(asked->running);

	if (asked->tool)
		calls_note(turn, asked->tool, result);
	if (result->status == RESULT_CANCELLED)
		turn_end(turn, AGENT_CANCELLED, turn_interrupted);
}

/* End the turn of a model that goes round in circles. */
static void calls_judge(struct turn *turn)
{
	struct err why;
	const enum circle_verdict verdict = circle_verdict(&turn->circle, &why);

	if (verdict == CIRCLE_REPEATS)
		turn_end(turn, AGENT_REPEATS, why.text);
	else if (verdict == CIRCLE_TIMEOUTS)
		turn_end(turn, AGENT_TIMEOUTS, why.text);
}

/* *ANSWERED: the call would only read the same again, and got its old answer. */
static bool calls_from_before(struct agent *agent, struct turn *turn,
			      const struct asked *asked, bool *answered, struct err *err)
{
	struct event event = {.kind = EVENT_TOOL_ENDED,
			      .call = asked->part->call_id,
			      .tool = asked->meant.tool};
	struct session_writes writes;
	auto_value struct value *data = NULL;

	session_writes(agent->options.session, &writes);
	data = circle_answer(&turn->circle, &asked->call, &writes);
	*answered = data != NULL;
	event.data = data;
	return data == NULL || recorder_event(agent->options.recorder, &event, err);
}

/* Ask the hooks what becomes of ASKED, which is about to start. */
static bool calls_before(struct agent *agent, struct turn *turn, struct asked *asked,
			 struct err *err)
{
	struct hook_moment moment = {.kind = HOOK_BEFORE_CALL,
				     .call = asked->part->call_id,
				     .tool = asked->tool};
	auto_value struct value *capped = NULL;
	struct buf sentence;
	bool fits;

	if (agent->options.hooks == NULL || asked->tool == NULL || turn->over)
		return true;
	buf_init(&sentence, RESULT_TEXT_MAX);
	/* The session refuses arguments that do not fit. */
	fits = schema_parse_arguments(asked->tool, str_of(asked->meant.arguments),
				      &asked->arguments, &sentence) &&
	       schema_fit(asked->tool, asked->arguments, &capped, &sentence);
	buf_fini(&sentence);
	if (!fits)
		return true;
	moment.arguments = asked->arguments;
	if (!agent_hooks_ask(agent, &moment, &asked->hooks, err))
		return false;
	if (asked->hooks.ends)
		turn_end(turn, AGENT_HOOK, asked->hooks.reason.data);
	return true;
}

/* The answer to ASKED, which a hook of the front or of a person has refused. */
static bool calls_refused(struct agent *agent, const struct asked *asked, struct err *err)
{
	const bool by_hook = asked->hooks.by.size > 0;
	struct buf text;
	bool recorded;

	buf_init(&text, RESULT_TEXT_MAX);
	if (by_hook)
		(void)buf_adds(&text, "A hook refused this call: ");
	(void)buf_addstr(&text, buf_str(&asked->hooks.reason));
	recorded = agent_calls_answer(agent, asked->part->call_id, asked->meant.tool,
				      by_hook ? RESULT_DENIED : RESULT_FAILED, text.data,
				      err);
	buf_fini(&text);
	return recorded;
}

/* ASKED has its result: tell the hooks. */
static bool calls_after(struct agent *agent, struct turn *turn, const struct asked *asked,
			struct err *err)
{
	const struct tool_result *result = running_result(asked->running);
	const bool well = result->status == RESULT_DONE && result->exit_code <= 0 &&
			  result->signal == 0;
	struct hook_moment moment = {
		.kind = well ? HOOK_AFTER_CALL : HOOK_AFTER_FAILURE,
		.call = asked->part->call_id,
		.tool = asked->tool,
		.arguments = asked->hooks.arguments != NULL ? asked->hooks.arguments
							    : asked->arguments,
		.result = result,
	};
	struct hook_answer answer;
	bool recorded;

	if (moment.arguments == NULL || result->status == RESULT_CANCELLED ||
	    result->status == RESULT_DENIED)
		return true;
	hook_answer_init(&answer);
	recorded = agent_hooks_ask(agent, &moment, &answer, err);
	if (answer.ends)
		turn_end(turn, AGENT_HOOK, answer.reason.data);
	hook_answer_fini(&answer);
	return recorded;
}

static bool calls_tell(struct agent *agent, struct turn *turn, const struct asked *asked,
		       struct err *err)
{
	if (asked->running == NULL)
		return true;
	calls_settle(turn, asked);
	return calls_after(agent, turn, asked, err);
}

/* Ask the hooks about COUNT calls, and answer those that they refuse. */
static bool calls_ask_hooks(struct agent *agent, struct turn *turn, struct asked *asked,
			    size_t count, struct err *err)
{
	bool fine = true;

	for (size_t i = 0; i < count && fine; i++)
		fine = calls_before(agent, turn, &asked[i], err);
	for (size_t i = 0; i < count && fine && !turn->over; i++)
		fine = asked[i].hooks.decision != HOOK_DENY ||
		       calls_refused(agent, &asked[i], err);
	return fine;
}

/* *RAN: the calls have their results. Else a hook has ended the turn before them. */
static bool calls_run_batch(struct agent *agent, struct turn *turn, struct asked *asked,
			    size_t count, bool *ran, struct err *err)
{
	bool fine;

	turn->asked = asked;
	turn->asked_count = count;
	for (size_t i = 0; i < count; i++)
		hook_answer_init(&asked[i].hooks);
	fine = calls_ask_hooks(agent, turn, asked, count, err);
	*ran = fine && !turn->over;
	if (*ran)
		calls_wait(agent, turn, asked, count);
	for (size_t i = 0; i < count; i++) {
		if (*ran && fine)
			fine = calls_tell(agent, turn, &asked[i], err);
		running_free(asked[i].running);
		hook_answer_fini(&asked[i].hooks);
		value_free(asked[i].arguments);
	}
	turn->asked_count = 0;
	return fine && !recorder_failed(agent->options.recorder, err);
}

static const struct asked *calls_find(const struct turn *turn, const char *call)
{
	for (size_t i = 0; turn != NULL && i < turn->asked_count; i++) {
		if (strcmp(turn->asked[i].part->call_id, call) == 0)
			return &turn->asked[i];
	}
	return NULL;
}

/* Ask the hooks whether ASKED may do what EVENT tells. HOOK_SILENT: they do not say. */
static enum hook_decision calls_ask_permission(struct agent *agent,
					       const struct asked *asked,
					       const struct event *event)
{
	const struct str effect = value_str(value_member(event->data, "effect"));
	const bool outside = !str_among("command hook", effect);
	struct hook_moment moment = {
		.kind = HOOK_PERMISSION,
		.call = event->call,
		.tool = asked->tool,
		.arguments = asked->hooks.arguments != NULL ? asked->hooks.arguments
							    : asked->arguments,
		.outside = outside,
	};
	enum hook_decision decision;
	struct hook_answer answer;
	struct err err;

	if (asked->hooks.decision == HOOK_ALLOW && !outside)
		return HOOK_ALLOW;
	hook_answer_init(&answer);
	/* A failure to record shows at the next event. */
	(void)agent_hooks_ask(agent, &moment, &answer, &err);
	if (answer.ends)
		turn_end(agent->turn, AGENT_HOOK, answer.reason.data);
	decision = answer.decision;
	hook_answer_fini(&answer);
	return decision;
}

static void calls_notify(struct agent *agent, const struct event *event)
{
	struct hook_moment moment = {.kind = HOOK_NOTIFICATION, .word = "permission_prompt"};
	struct hook_answer answer;
	char message[ERR_TEXT_MAX];
	struct err err;

	(void)snprintf(message, sizeof(message),
		       "Glovebox needs your permission to use %.100s",
		       event->tool != NULL ? event->tool : "a tool");
	moment.text = message;
	hook_answer_init(&answer);
	(void)agent_hooks_ask(agent, &moment, &answer, &err);
	hook_answer_fini(&answer);
}

const char *agent_calls_decide(void *context, const struct event *event)
{
	struct agent *agent = context;
	/* A delegate's question has been put to the hooks in its own process. */
	const bool relayed = value_member(event->data, "delegates") != NULL;
	const struct asked *asked = relayed ? NULL : calls_find(agent->turn, event->call);

	agent->permission = HOOK_SILENT;
	if (asked != NULL && agent->options.hooks != NULL)
		agent->permission = calls_ask_permission(agent, asked, event);
	if (agent->permission != HOOK_SILENT)
		return "hook";
	if (!agent->options.answered)
		return "nobody";
	if (agent->options.hooks != NULL)
		calls_notify(agent, event);
	return NULL;
}

void agent_calls_answer_question(void *context, const struct event *event)
{
	const struct agent *agent = context;
	const bool by_hook = agent->permission != HOOK_SILENT;
	auto_value struct value *reply =
		approval_reply(agent->permission == HOOK_ALLOW ? APPROVAL_ONCE : APPROVAL_NO,
			       by_hook ? APPROVAL_BY_HOOK : APPROVAL_BY_NOBODY,
			       value_text(value_member(event->data, "hash")));

	/* This fails when the call has ended meanwhile: it needs no answer then. */
	(void)session_answer(agent->options.session, event->call,
			     value_integer(value_member(event->data, "id")), reply, NULL);
}

static bool calls_go_beside(const struct asked *asked)
{
	const struct tool *tool = asked->tool;
	auto_value struct value *arguments = NULL;

	if (!tool || !tool->goes_beside)
		return tool && tool->effects == EFFECT_READS;
	return value_parse(str_of(asked->meant.arguments), VALUE_REPAIR, &arguments, NULL) &&
	       tool->goes_beside(tool->keeper, arguments);
}

/*
 * How many of COUNT calls may run at the same time. The second of two equal calls must
 * wait, because its result is compared with that of the first.
 */
static size_t calls_batch(const struct asked *asked, size_t count)
{
	size_t size = 1;

	while (size < count && size < CALLS_SIDE_BY_SIDE && calls_go_beside(&asked[0]) &&
	       calls_go_beside(&asked[size])) {
		for (size_t i = 0; i < size; i++) {
			if (strcmp(asked[i].call.key, asked[size].call.key) == 0)
				return size;
		}
		size++;
	}
	return size;
}

/* Name the call for the detector of circles, and note whether it only reads or waits. */
static void calls_name(struct asked *asked)
{
	const struct tool *tool = asked->tool;
	auto_value struct value *arguments = NULL;

	circle_name(&asked->call, asked->meant.tool, asked->meant.arguments);
	asked->call.only_reads =
		tool && tool->where == IN_CELL && tool->effects == EFFECT_READS;
	asked->call.waits = tool && tool->where == IN_JOBS &&
			    value_parse(str_of(asked->meant.arguments), VALUE_REPAIR,
					&arguments, NULL) &&
			    str_is(value_str(value_member(arguments, "action")), "wait");
}

static struct asked *calls_of(struct agent *agent, struct turn *turn, size_t *count)
{
	const struct conversation *conversation = &agent->history.conversation;
	const struct message *message =
		&conversation->messages[conversation->message_count - 1];
	struct asked *asked = memory_array(message->part_count, sizeof(*asked));

	*count = 0;
	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];

		if (part->kind != PART_CALL)
			continue;
		asked[*count].agent = agent;
		asked[*count].turn = turn;
		asked[*count].part = part;
		tool_search_meant(part, &asked[*count].meant);
		asked[*count].tool = tool_find(session_tools(agent->options.session),
					       asked[*count].meant.tool);
		calls_name(&asked[*count]);
		(*count)++;
	}
	return asked;
}

/* Run COUNT calls, or refuse those that a turn that is over leaves. */
static bool calls_run_all(struct agent *agent, struct turn *turn, struct asked *asked,
			  size_t count, struct err *err)
{
	size_t at = 0;

	while (at < count && !turn->over) {
		size_t size = 1;
		bool answered;

		if (agent_interrupted(agent)) {
			turn_end(turn, AGENT_CANCELLED, turn_interrupted);
			break;
		}
		if (!calls_from_before(agent, turn, &asked[at], &answered, err))
			return false;
		if (!answered) {
			bool ran;

			size = calls_batch(&asked[at], count - at);
			if (!calls_run_batch(agent, turn, &asked[at], size, &ran, err))
				return false;
			if (!ran)
				break;
		}
		calls_judge(turn);
		at += size;
	}
	for (; at < count; at++) {
		if (!calls_refuse(agent, turn, &asked[at], err))
			return false;
	}
	return true;
}

bool agent_calls_run(struct agent *agent, struct turn *turn, struct err *err)
{
	size_t count;
	auto_free struct asked *asked = calls_of(agent, turn, &count);
	const bool fine = calls_run_all(agent, turn, asked, count, err);
	struct err sentence;

	for (size_t i = 0; i < count; i++)
		meant_fini(&asked[i].meant);
	if (!fine)
		return false;
	if (turn->patch)
		turn_end(turn, AGENT_PATCH, NULL);
	if (turn->planned)
		turn_end(turn, AGENT_PLAN, NULL);
	if (!agent_hooks_flush(agent, turn, err))
		return false;
	/* After all results, as the last text of this step in the conversation. */
	if (!turn->over && circle_take_sentence(&turn->circle, &sentence) &&
	    !agent_notice(agent, sentence.text, true, err))
		return false;
	return agent_checks_syntax(agent, turn, err);
}
