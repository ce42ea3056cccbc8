/* history: kept events -> conversation. */
#include "agent/history.h"

#include "base/memory.h"
#include "runtime/tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Services refuse or misread an empty result; the model should know that it was one. */
static const char empty_result[] = "(The tool gave no output.)";
static const char lost_result[] =
	"No result: the session ended before this call was answered. It may have run in part.";

/* In the order of enum part_kind; results are events of their own. */
static const char *const part_names[] = {"text", "thinking", "call"};
enum { PART_NAMES = sizeof(part_names) / sizeof(part_names[0]) };

void history_init(struct history *history)
{
	*history = (struct history){0};
	conversation_init(&history->conversation);
}

static void history_drop_results(struct history *history)
{
	for (size_t i = 0; i < history->result_count; i++) {
		free(history->results[i].call);
		free(history->results[i].text);
	}
	free(history->results);
	history->results = NULL;
	history->result_count = 0;
}

void history_fini(struct history *history)
{
	history_drop_results(history);
	conversation_fini(&history->conversation);
}

static struct message *history_last(struct history *history)
{
	struct conversation *conversation = &history->conversation;

	if (conversation->message_count == 0)
		return NULL;
	return &conversation->messages[conversation->message_count - 1];
}

static struct message *history_user_message(struct history *history)
{
	struct message *last = history_last(history);

	if (last && last->speaker == SPEAKER_USER)
		return last;
	return conversation_add(&history->conversation, SPEAKER_USER);
}

static const struct part *message_call(const struct message *message, const char *call)
{
	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];

		if (part->kind == PART_CALL && strcmp(part->call_id, call) == 0)
			return part;
	}
	return NULL;
}

bool history_has_call(const struct conversation *conversation, const char *call)
{
	for (size_t i = 0; i < conversation->message_count; i++) {
		if (message_call(&conversation->messages[i], call))
			return true;
	}
	return false;
}

static const struct history_result *history_result_of(const struct history *history,
						      const char *call)
{
	for (size_t i = 0; i < history->result_count; i++) {
		if (strcmp(history->results[i].call, call) == 0)
			return &history->results[i];
	}
	return NULL;
}

static void history_add_result(struct history *history, const struct event *event)
{
	struct message *last = history_last(history);
	const struct value *content = value_member(event->data, "content");
	const char *status = value_text(value_member(event->data, "status"));
	struct history_result *result;
	struct buf text;

	if (!event->call || !last || last->speaker != SPEAKER_MODEL ||
	    !message_call(last, event->call) || history_result_of(history, event->call))
		return;
	buf_init(&text, 2 * RESULT_TEXT_MAX + RESULT_CONTENT_BYTES_MAX);
	(void)buf_addstr(&text, value_str(value_member(event->data, "text")));
	tool_add_content_text(content, &text);
	if (str_trim(buf_str(&text)).size == 0) {
		buf_clear(&text);
		(void)buf_adds(&text, empty_result);
	}
	history->results = memory_grow(history->results, history->result_count + 1,
				       sizeof(*history->results));
	result = &history->results[history->result_count++];
	result->call = memory_copy(event->call);
	result->text = buf_take(&text);
	result->is_error = !status || strcmp(status, result_status_name(RESULT_DONE)) != 0;
}

void history_settle(struct history *history)
{
	struct conversation *conversation = &history->conversation;
	struct message *last = history_last(history);
	struct message *answers = NULL;
	size_t asked;

	if (!last || last->speaker != SPEAKER_MODEL)
		return;
	asked = conversation->message_count - 1;
	for (size_t i = 0; i < conversation->messages[asked].part_count; i++) {
		const struct part *part = &conversation->messages[asked].parts[i];
		const struct history_result *result;

		if (part->kind != PART_CALL)
			continue;
		/* Moves the messages (LAST is gone then), but not their parts. */
		if (!answers)
			answers = conversation_add(conversation, SPEAKER_USER);
		result = history_result_of(history, part->call_id);
		message_add_result(answers, part->call_id, part->tool,
				   result ? result->text : lost_result,
				   result ? result->is_error : true);
	}
	history_drop_results(history);
}

struct value *history_message_value(const struct message *message)
{
	struct value *data = value_new_object();
	struct value *parts = value_new_array();

	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];
		struct value *item;

		if ((size_t)part->kind >= PART_NAMES)
			continue;
		item = value_new_object();
		value_set_text(item, "kind", part_names[part->kind]);
		if (part->kind == PART_CALL) {
			value_set_text(item, "call", part->call_id);
			value_set_text(item, "tool", part->tool);
			value_set_text(item, "arguments",
				       part->arguments ? part->arguments : "");
		} else {
			value_set_text(item, "text", part->text ? part->text : "");
		}
		if (part->extra)
			value_set(item, "extra", value_copy(part->extra));
		value_append(parts, item);
	}
	value_set(data, "parts", parts);
	return data;
}

static bool history_add_part(struct message *message, const struct value *item,
			     struct err *err)
{
	const char *kind = value_text(value_member(item, "kind"));
	const char *text = value_text(value_member(item, "text"));
	const char *call = value_text(value_member(item, "call"));
	const char *tool = value_text(value_member(item, "tool"));
	const char *arguments = value_text(value_member(item, "arguments"));
	const struct value *extra = value_member(item, "extra");
	struct part *part = NULL;

	if (kind && strcmp(kind, part_names[PART_TEXT]) == 0 && text)
		part = message_add_text(message, text);
	else if (kind && strcmp(kind, part_names[PART_THINKING]) == 0 && text)
		part = message_add_thinking(message, text, NULL);
	else if (kind && strcmp(kind, part_names[PART_CALL]) == 0 && call && tool &&
		 arguments)
		part = message_add_call(message, call, tool, arguments);
	if (!part)
		return err_set(err, EPROTO,
			       "a message holds a part that is none of ours (%s)",
			       kind ? kind : "without a kind");
	if (extra)
		part->extra = value_copy(extra);
	return true;
}

static bool history_add_message(struct history *history, const struct event *event,
				struct err *err)
{
	const struct value *parts = value_member(event->data, "parts");
	struct message *message;

	if (value_kind(parts) != VALUE_ARRAY)
		return err_set(err, EPROTO, "a message without its list of parts");
	history_settle(history);
	message = conversation_add(&history->conversation, SPEAKER_MODEL);
	for (size_t i = 0; i < value_count(parts); i++) {
		if (!history_add_part(message, value_item(parts, i), err))
			return false;
	}
	return true;
}

static void history_add_text(struct history *history, struct str text)
{
	auto_free char *copy = memory_copy_str(text);

	history_settle(history);
	message_add_text(history_user_message(history), copy);
}

bool history_event(struct history *history, const struct event *event, struct err *err)
{
	switch (event->kind) {
	case EVENT_TURN_BEGAN:
		history_add_text(history, event->text);
		return true;
	case EVENT_NOTICE:
		if (value_is_true(value_member(event->data, "to_model")))
			history_add_text(history, event->text);
		return true;
	case EVENT_MESSAGE:
		return history_add_message(history, event, err);
	case EVENT_TOOL_ENDED:
		history_add_result(history, event);
		return true;
	default:
		return true;
	}
}

bool history_line(struct history *history, struct str json, struct err *err)
{
	auto_value struct value *line = NULL;
	struct event event = {0};
	const char *name;

	if (!value_parse(json, 0, &line, err))
		return err_while(err, "reading an event");
	name = value_text(value_member(line, "event"));
	if (!name || !event_kind_parse(name, &event.kind))
		return err_set(err, EPROTO, "an event of a kind that is not known: %s",
			       name ? name : "none");
	event.number = value_integer(value_member(line, "n"));
	event.call = value_text(value_member(line, "call"));
	event.tool = value_text(value_member(line, "tool"));
	event.text = value_str(value_member(line, "text"));
	event.data = line;
	if (!history_event(history, &event, err))
		return err_while(err, "event %lld", (long long)event.number);
	return true;
}
