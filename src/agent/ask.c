/* ask: one question to the model, and its answer made fit for the record. */
#include "agent/agent.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Answers in a row without a call that are empty or cut: after these it will not get
 * better.
 */
enum { ASK_FRUITLESS_MAX = 3 };

static const char empty_answer[] = "(This answer was empty.)";
static const char ask_again[] =
	"Your last answer was empty. Go on with the task, or say in a sentence that it is done.";
static const char ask_rest[] =
	"Your last answer was cut off at the length limit of one answer. Go on where it stopped.";

static void ask_fragment(void *context, enum event_kind kind, struct str fragment)
{
	struct agent *agent = context;
	struct event event = {.kind = kind, .text = fragment};

	(void)recorder_event(agent->options.recorder, &event, NULL);
}

static void ask_text(void *context, struct str fragment)
{
	ask_fragment(context, EVENT_TEXT, fragment);
}

static void ask_thinking(void *context, struct str fragment)
{
	ask_fragment(context, EVENT_THINKING, fragment);
}

/* Before the turn's first command, and beside the model's first thoughts. */
static void ask_look(struct agent *agent)
{
	if (agent->turn->looked)
		return;
	agent->turn->looked = true;
	session_checkpoint(agent->options.session, true);
}

static void ask_waiting(void *context)
{
	struct agent *agent = context;

	ask_look(agent);
	session_rest(agent->options.session);
}

/*
 * Does another call of MESSAGE than the one AT have this id? Earlier ones only, unless
 * ALL.
 */
static bool ask_id_is_taken(const struct message *message, size_t at, bool all,
			    const char *id)
{
	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];

		if (i >= at && !all)
			return false;
		if (i != at && part->kind == PART_CALL && part->call_id &&
		    strcmp(part->call_id, id) == 0)
			return true;
	}
	return false;
}

/* Services leave ids out or use them twice; a result must find its call. */
static size_t ask_settle_ids(struct agent *agent, struct message *message)
{
	size_t calls = 0;

	for (size_t i = 0; i < message->part_count; i++) {
		struct part *part = &message->parts[i];
		char id[AGENT_ID];

		if (part->kind != PART_CALL)
			continue;
		calls++;
		if (part->call_id && *part->call_id &&
		    !ask_id_is_taken(message, i, false, part->call_id) &&
		    agent_id_number(part->call_id) > agent->last_id &&
		    !history_has_call(&agent->history, part->call_id))
			continue;
		do
			agent_new_id(agent, id);
		while (ask_id_is_taken(message, i, true, id));
		free(part->call_id);
		part->call_id = memory_copy(id);
	}
	return calls;
}

/*
 * True when the model said nothing but blanks; the sentence that stands for it is put
 * in.
 */
static bool ask_fill_empty(struct message *message)
{
	struct part *text = NULL;

	for (size_t i = 0; i < message->part_count; i++) {
		struct part *part = &message->parts[i];

		if (part->kind != PART_TEXT)
			continue;
		if (str_trim(str_of(part->text)).size > 0)
			return false;
		text = part;
	}
	if (text) {
		free(text->text);
		text->text = memory_copy(empty_answer);
	} else {
		message_add_text(message, empty_answer);
	}
	return true;
}

static bool ask_record(struct agent *agent, const struct message *message,
		       enum model_finish finish, const struct model_usage *used,
		       struct err *err)
{
	static const char *const finishes[] = {
		[MODEL_FINISH_STOP] = "stop",     [MODEL_FINISH_CALLS] = "calls",
		[MODEL_FINISH_LENGTH] = "length", [MODEL_FINISH_REFUSED] = "refused",
		[MODEL_FINISH_PAUSED] = "paused",
	};
	auto_value struct value *data = history_message_value(message);
	struct event event = {.kind = EVENT_MESSAGE, .data = data};

	value_set_text(data, "finish", finishes[finish]);
	value_set(data, "usage", turn_usage_value(used));
	return recorder_event(agent->options.recorder, &event, err);
}

/* An answer without a call: the end, unless it was no answer. */
static bool ask_end(struct agent *agent, struct turn *turn, enum model_finish finish,
		    bool empty, struct err *err)
{
	bool cut = finish == MODEL_FINISH_LENGTH;

	if (finish == MODEL_FINISH_REFUSED) {
		turn_end(turn, AGENT_MODEL_FAILED,
			 "The model's service refused to answer (its content filter). Put the "
			 "task in other words, or use another model.");
		return true;
	}
	if (!empty && !cut) {
		turn_end(turn, AGENT_STOPPED, NULL);
		return true;
	}
	if (++turn->fruitless < ASK_FRUITLESS_MAX)
		return agent_notice(agent, cut ? ask_rest : ask_again, true, err);
	turn_end(turn, AGENT_MODEL_FAILED,
		 cut ? "The model's answers were cut off at their length limit again and again."
		     : "The model gave one empty answer after the other.");
	return true;
}

static bool ask_take(struct agent *agent, struct turn *turn, struct message *message,
		     enum model_finish finish, const struct model_usage *usage,
		     struct err *err)
{
	size_t calls = ask_settle_ids(agent, message);
	bool paused = finish == MODEL_FINISH_PAUSED;
	bool empty = calls == 0 && !paused && ask_fill_empty(message);

	turn_add_usage(turn, usage);
	if (!ask_record(agent, message, finish, usage, err))
		return false;
	if (calls == 0 && !paused)
		return ask_end(agent, turn, finish, empty, err);
	turn->fruitless = 0;
	return true;
}

static bool ask_once(struct agent *agent, struct conversation *answer,
		     enum model_finish *finish, struct model_usage *usage, struct err *why)
{
	const struct model_sink sink = {
		.context = agent,
		.text = ask_text,
		.thinking = ask_thinking,
		.waiting = ask_waiting,
		.retry = turn_retry,
	};
	const struct model_request request = {
		.conversation = &agent->history.conversation,
		.tools = agent->tools,
		.tool_count = agent->tool_count,
		.stop_fd = agent->stop_fd,
	};

	if (model_ask(agent->options.model, &request, &sink, answer, finish, usage, why))
		return true;
	if (why->code != ENODATA)
		return false;
	/* Blanks only: an answer all the same, and the model is told so. */
	(void)conversation_add(answer, SPEAKER_MODEL);
	return true;
}

bool ask_model(struct agent *agent, struct turn *turn, struct err *err)
{
	struct conversation answer;
	struct model_usage usage = {0};
	enum model_finish finish = MODEL_FINISH_STOP;
	struct err why = {0};
	bool answered, recorded = true, shorter = false;

	conversation_init(&answer);
	answered = ask_once(agent, &answer, &finish, &usage, &why);
	if (!answered && why.code == E2BIG)
		recorded = compact_overflow(agent, turn, &shorter, err);
	if (shorter && recorded && !turn->over)
		answered = ask_once(agent, &answer, &finish, &usage, &why);
	/* An answer that was there at once left no time for it. */
	ask_look(agent);
	if (answered)
		recorded = ask_take(agent, turn, &answer.messages[0], finish, &usage, err);
	else if (recorded)
		turn_failed(agent, turn, &why);
	/* A model that failed gave no answer; one that was interrupted gave a part of one. */
	if (!answered && why.code != ECANCELED)
		turn->limits.iterations--;
	conversation_fini(&answer);
	return recorded;
}
