/* calls: run what the model asked for; every call is answered, whatever comes between. */
#include "agent/checks.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Calls under way at once: twice the workers of a small machine; more would only queue.
 */
enum { CALLS_SIDE_BY_SIDE = 8 };

/* Never 0, because 0 means that there is no limit. */
static const double calls_shortest_s = 0.001;

struct asked {
	struct agent *agent;
	struct turn *turn;
	const struct part *part;
	const struct tool *tool; /* NULL: there is none of this name */
	struct guard_call call;
	struct running *running;
};

/* Does a call of TOOL use up the time for commands? To ask a job does not. */
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

bool calls_answer(struct agent *agent, const char *call, const char *tool,
		  enum result_status status, const char *text, struct err *err)
{
	struct event event = {.kind = EVENT_TOOL_ENDED, .call = call, .tool = tool};
	auto_value struct value *data = NULL;
	struct tool_result result;

	tool_result_init(&result);
	result.status = status;
	result.level = session_level(agent->options.session);
	buf_adds(&result.text, text);
	data = tool_result_value(&result);
	tool_result_fini(&result);
	event.data = data;
	return recorder_event(agent->options.recorder, &event, err);
}

/* The answer to a call that was never started. */
static bool calls_refuse(struct agent *agent, const struct turn *turn,
			 const struct part *part, struct err *err)
{
	bool cancelled = turn->outcome->reason == AGENT_CANCELLED;
	char text[sizeof("Not run: ") + ERR_TEXT_MAX];

	(void)snprintf(text, sizeof(text), "Not run: %s", turn->outcome->sentence);
	return calls_answer(agent, part->call_id, part->tool,
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
	if (strcmp(tool->name, turn_patch_tool) == 0 && result->status == RESULT_DONE)
		handover_take(turn, result);
	if (strcmp(tool->name, "delegate_agent") == 0)
		handover_take_delegated(turn, result->details);
	checks_note(turn, tool, result);
}

/* Before anybody is told of the result: the guard may have something to add. */
static void calls_ending(void *context, struct tool_result *result)
{
	const struct asked *asked = context;
	struct session_writes writes;

	session_writes(asked->agent->options.session, &writes);
	guard_result(&asked->turn->guard, &asked->call, &writes, result);
}

/* Start COUNT calls, wait for all. */
static void calls_wait(struct agent *agent, struct turn *turn, struct asked *asked,
		       size_t count)
{
	struct session *session = agent->options.session;
	struct session_writes writes;
	size_t done = 0;

	session_writes(session, &writes);
	for (size_t i = 0; i < count; i++) {
		const struct request request = {
			.tool = asked[i].part->tool,
			.arguments_text = str_of(asked[i].part->arguments),
			.id = asked[i].part->call_id,
			.most_s = calls_most_s(turn, &asked[i]),
			.ending = calls_ending,
		};

		asked[i].call.writers = writes.writers;
		asked[i].running = session_start(session, &request, NULL, &asked[i]);
	}
	while (done < count) {
		if (running_is_done(asked[done].running))
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

/* The turn of a model that goes round in circles is over. */
static void calls_judge(struct turn *turn)
{
	struct err why;
	const enum guard_verdict verdict = guard_verdict(&turn->guard, &why);

	if (verdict == GUARD_REPEATS)
		turn_end(turn, AGENT_REPEATS, why.text);
	else if (verdict == GUARD_TIMEOUTS)
		turn_end(turn, AGENT_TIMEOUTS, why.text);
}

/* *ANSWERED: the call only reads, and the same again: it has its answer from before. */
static bool calls_from_before(struct agent *agent, struct turn *turn,
			      const struct asked *asked, bool *answered, struct err *err)
{
	struct event event = {.kind = EVENT_TOOL_ENDED,
			      .call = asked->part->call_id,
			      .tool = asked->part->tool};
	struct session_writes writes;
	auto_value struct value *data = NULL;

	session_writes(agent->options.session, &writes);
	data = guard_answer(&turn->guard, &asked->call, &writes);
	*answered = data != NULL;
	event.data = data;
	return data == NULL || recorder_event(agent->options.recorder, &event, err);
}

static bool calls_run_batch(struct agent *agent, struct turn *turn, struct asked *asked,
			    size_t count, struct err *err)
{
	calls_wait(agent, turn, asked, count);
	for (size_t i = 0; i < count; i++) {
		calls_settle(turn, &asked[i]);
		running_free(asked[i].running);
	}
	return !recorder_failed(agent->options.recorder, err);
}

static bool calls_go_beside(const struct asked *asked)
{
	const struct tool *tool = asked->tool;
	auto_value struct value *arguments = NULL;

	if (!tool || !tool->goes_beside)
		return tool && tool->effects == EFFECT_READS;
	return value_parse(str_of(asked->part->arguments), VALUE_REPAIR, &arguments, NULL) &&
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

/* Tell the guard, before the call runs, its name, and whether it only reads or waits. */
static void calls_name(struct asked *asked)
{
	const struct tool *tool = asked->tool;
	auto_value struct value *arguments = NULL;

	guard_name(&asked->call, asked->part->tool, asked->part->arguments);
	asked->call.only_reads =
		tool && tool->where == IN_CELL && tool->effects == EFFECT_READS;
	asked->call.waits = tool && tool->where == IN_JOBS &&
			    value_parse(str_of(asked->part->arguments), VALUE_REPAIR,
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
		asked[*count].tool =
			tool_find(session_tools(agent->options.session), part->tool);
		calls_name(&asked[*count]);
		(*count)++;
	}
	return asked;
}

bool calls_run(struct agent *agent, struct turn *turn, struct err *err)
{
	size_t count, at = 0;
	auto_free struct asked *asked = calls_of(agent, turn, &count);
	struct err sentence;

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
			size = calls_batch(&asked[at], count - at);
			if (!calls_run_batch(agent, turn, &asked[at], size, err))
				return false;
		}
		calls_judge(turn);
		at += size;
	}
	for (; at < count; at++) {
		if (!calls_refuse(agent, turn, asked[at].part, err))
			return false;
	}
	if (turn->patch)
		turn_end(turn, AGENT_PATCH, NULL);
	/* Behind all results: it ends them in the conversation. */
	if (!turn->over && guard_take_sentence(&turn->guard, &sentence) &&
	    !agent_notice(agent, sentence.text, true, err))
		return false;
	return checks_syntax(agent, turn, err);
}
