/*
 * turn: functions that every part of the loop uses for the turn under way: to end it, to
 * count its usage, to record it. This file calls none of the other parts.
 */
#include "agent/turn.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char turn_patch_tool[] = "generate_patch";
const char turn_interrupted[] = "Interrupted by the user.";

bool agent_record_begin(struct agent *agent, enum event_kind kind, const char *text,
			struct err *err)
{
	const struct agent_options *options = &agent->options;
	const char *workspace = session_workspace(options->session);
	const char *model = model_name(options->model);
	auto_value struct value *data = value_new_object();
	struct event event = {.kind = kind, .text = str_of(text), .data = data};

	if (!text)
		event.text.data = NULL;
	value_set_text(data, "session", recorder_session_id(options->recorder));
	value_set_text(data, "run", session_run(options->session));
	value_set_text(data, "workspace", workspace);
	value_set_text(data, "agent", options->name);
	value_set_text(data, "model", model);
	value_set_boolean(data, "replay", model_is_replay(options->model));
	value_set_integer(data, "level", session_level(options->session));
	if (options->parent)
		value_set_text(data, "parent", options->parent);
	return recorder_event(options->recorder, &event, err);
}

bool agent_interrupted(const struct agent *agent)
{
	struct pollfd poll_fd = {.fd = agent->options.cancel_fd, .events = POLLIN};

	return poll_fd.fd >= 0 && poll(&poll_fd, 1, 0) > 0;
}

void agent_new_id(struct agent *agent, char id[AGENT_ID])
{
	do {
		(void)snprintf(id, AGENT_ID, "c%llu", (unsigned long long)++agent->last_id);
	} while (history_has_call(&agent->history, id));
}

uint64_t agent_id_number(const char *id)
{
	unsigned long long number;
	char *end;

	if (id[0] != 'c' || !isdigit((unsigned char)id[1]))
		return UINT64_MAX;
	number = strtoull(id + 1, &end, 10);
	return *end == '\0' ? number : UINT64_MAX;
}

bool agent_notice(struct agent *agent, const char *sentence, bool to_model, struct err *err)
{
	auto_value struct value *data = value_new_object();
	struct event event = {
		.kind = EVENT_NOTICE,
		.text = str_of(sentence),
		.data = data,
	};

	value_set_boolean(data, "to_model", to_model);
	return recorder_event(agent->options.recorder, &event, err);
}

uint64_t agent_tokens(const struct agent *agent)
{
	return history_tokens(&agent->history, agent->fixed_bytes);
}

void turn_end(struct turn *turn, enum agent_reason reason, const char *sentence)
{
	if (turn->over)
		return;
	turn->over = true;
	turn->outcome->reason = reason;
	if (sentence)
		(void)snprintf(turn->outcome->sentence, sizeof(turn->outcome->sentence),
			       "%s", sentence);
}

void turn_failed(struct agent *agent, struct turn *turn, const struct err *why)
{
	if (why->code != ECANCELED)
		turn_end(turn, AGENT_MODEL_FAILED, why->text);
	else if (agent_interrupted(agent))
		turn_end(turn, AGENT_CANCELLED, turn_interrupted);
	else
		turn_end(turn, AGENT_WALL, "The time of this run is over.");
}

/* A notice that cannot be recorded is found by the next event that must be. */
void turn_retry(void *context, const char *why, double wait_s)
{
	struct buf sentence;

	buf_init(&sentence, ERR_TEXT_MAX);
	buf_addf(&sentence, "No whole answer came, asking again in %.1f s: ", wait_s);
	(void)buf_addstr(&sentence, str_part(str_of(why), 0, ERR_TEXT_MAX / 2));
	(void)agent_notice(context, sentence.data, false, NULL);
	buf_fini(&sentence);
}

void turn_sum_usage(struct model_usage *sum, const struct model_usage *usage)
{
	sum->input += usage->input;
	sum->output += usage->output;
	sum->cached += usage->cached;
	sum->cache_writes += usage->cache_writes;
	sum->reasoning += usage->reasoning;
	sum->money = sum->money < 0 || usage->money < 0 ? -1 : sum->money + usage->money;
}

void turn_add_usage(struct turn *turn, const struct model_usage *usage)
{
	turn_sum_usage(&turn->outcome->usage, usage);
	turn->limits.tokens += usage->input + usage->output;
	if (usage->money >= 0)
		turn->limits.money += usage->money;
	else
		turn->limits.money_is_lost = true;
}

/* Sums of doubles grow tails of digits: a nano-dollar is no price's digit any more. */
static double turn_round(double money)
{
	return (double)(int64_t)(money * 1e9 + 0.5) / 1e9;
}

struct value *turn_usage_value(const struct model_usage *usage)
{
	struct value *value = value_new_object();

	value_set_integer(value, "input", (int64_t)usage->input);
	value_set_integer(value, "output", (int64_t)usage->output);
	value_set_integer(value, "cached", (int64_t)usage->cached);
	value_set_integer(value, "cache_writes", (int64_t)usage->cache_writes);
	value_set_integer(value, "reasoning", (int64_t)usage->reasoning);
	if (usage->money >= 0)
		value_set_real(value, "money", turn_round(usage->money));
	value_set_boolean(value, "money_known", usage->money >= 0);
	return value;
}
