/*
 * openai_chat_request: a conversation as the body of one Chat Completions request.
 * Written straight into the buffer, so that a long conversation is not built a second
 * time.
 */
#include "model/providers/openai_chat.h"

#include <stddef.h>

#include "model/conversation.h"
#include "model/providers/openai_family.h"

static bool message_has(const struct message *message, enum part_kind kind)
{
	for (size_t i = 0; i < message->part_count; i++) {
		if (message->parts[i].kind == kind)
			return true;
	}
	return false;
}

/* Append `"KEY":` and the text of all parts of KIND as one string. */
static void write_joined(const struct message *message, enum part_kind kind,
			 const char *key, struct buf *body)
{
	struct buf joined;

	buf_init(&joined, body->max);
	for (size_t i = 0; i < message->part_count; i++) {
		if (message->parts[i].kind == kind)
			(void)buf_addstr(&joined, str_of(message->parts[i].text));
	}
	(void)buf_addf(body, "\"%s\":", key);
	(void)value_quote(buf_str(&joined), body);
	body->overflowed = body->overflowed || joined.overflowed;
	buf_fini(&joined);
}

/* The arguments: a string that is a JSON object itself. */
static void write_arguments(const struct part *call, struct buf *body)
{
	struct buf object;

	buf_init(&object, body->max);
	request_add_arguments(call, &object);
	(void)value_quote(buf_str(&object), body);
	body->overflowed = body->overflowed || object.overflowed;
	buf_fini(&object);
}

static const char *known_field(const struct value *extra)
{
	struct str field = value_str(value_member(extra, CHAT_EXTRA_FIELD));

	for (size_t i = 0; chat_reasoning_fields[i]; i++) {
		if (str_is(field, chat_reasoning_fields[i]))
			return chat_reasoning_fields[i];
	}
	return NULL;
}

/*
 * Reasoning goes back in the field in which it came: some servers refuse a conversation
 * without it, and those that do not want it drop it in their template. Details first, as
 * they hold the text too, signed. Thinking of other providers stays at home.
 */
static void write_reasoning(const struct message *message, struct buf *body)
{
	const char *field = NULL;
	const char *separator = ",\"" CHAT_EXTRA_DETAILS "\":[";
	bool has_details = false;

	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];
		const struct value *list = value_member(part->extra, CHAT_EXTRA_DETAILS);

		if (part->kind != PART_THINKING)
			continue;
		if (!field)
			field = known_field(part->extra);
		for (size_t n = 0; n < value_count(list); n++) {
			(void)buf_adds(body, separator);
			(void)value_print(value_item(list, n), 0, body);
			separator = ",";
			has_details = true;
		}
	}
	if (has_details) {
		(void)buf_addc(body, ']');
	} else if (field) {
		(void)buf_addc(body, ',');
		write_joined(message, PART_THINKING, field, body);
	}
}

static void write_model_message(const struct message *message, struct buf *body)
{
	bool has_calls = message_has(message, PART_CALL);

	(void)buf_adds(body, ",{\"role\":\"assistant\",");
	if (has_calls && !message_has(message, PART_TEXT))
		(void)buf_adds(body, "\"content\":null");
	else
		write_joined(message, PART_TEXT, "content", body);
	write_reasoning(message, body);
	request_add_calls(message, "\"type\":\"function\",", CHAT_EXTRA_CALL,
			  write_arguments, body);
	(void)buf_addc(body, '}');
}

static void write_result(const struct part *part, struct buf *body)
{
	(void)buf_adds(body, ",{\"role\":\"tool\",\"tool_call_id\":");
	(void)value_quote(str_of(part->call_id), body);
	(void)buf_adds(body, ",\"content\":");
	(void)value_quote(str_of(request_result_text(part)), body);
	(void)buf_addc(body, '}');
}

/*
 * The user's messages from FIRST to before END: results first, as they must follow their
 * calls, then all text as one message, as many templates want the speakers in turns.
 */
static void write_user_run(const struct conversation *conversation, size_t first,
			   size_t end, struct buf *body)
{
	struct buf text;

	buf_init(&text, body->max);
	for (size_t i = first; i < end; i++) {
		const struct message *message = &conversation->messages[i];

		for (size_t n = 0; n < message->part_count; n++) {
			const struct part *part = &message->parts[n];

			if (part->kind == PART_RESULT)
				write_result(part, body);
			if (part->kind != PART_TEXT || request_is_blank(part->text))
				continue;
			if (text.size > 0)
				(void)buf_adds(&text, "\n\n");
			(void)buf_adds(&text, part->text);
		}
	}
	if (text.size > 0) {
		(void)buf_adds(body, ",{\"role\":\"user\",\"content\":");
		(void)value_quote(buf_str(&text), body);
		(void)buf_addc(body, '}');
	}
	body->overflowed = body->overflowed || text.overflowed;
	buf_fini(&text);
}

static bool is_model_message(const struct message *message)
{
	return message->speaker == SPEAKER_MODEL && message->part_count > 0;
}

static void write_messages(const struct conversation *conversation, struct buf *body)
{
	size_t first = 0;
	size_t list = body->size;

	if (!request_is_blank(conversation->system_prompt)) {
		(void)buf_adds(body, ",{\"role\":\"system\",\"content\":");
		(void)value_quote(str_of(conversation->system_prompt), body);
		(void)buf_addc(body, '}');
	}
	for (size_t i = 0; i < conversation->message_count; i++) {
		const struct message *message = &conversation->messages[i];

		if (!is_model_message(message))
			continue;
		write_user_run(conversation, first, i, body);
		write_model_message(message, body);
		first = i + 1;
	}
	write_user_run(conversation, first, conversation->message_count, body);
	/* Each began with a comma; the first one has none before it. */
	if (body->size > list)
		body->data[list] = '[';
	else
		(void)buf_addc(body, '[');
	(void)buf_addc(body, ']');
}

void openai_chat_write_tools(const struct model_request *request, struct buf *body)
{
	const char *separator = ",\"tools\":[";

	for (size_t i = 0; i < request->tool_count; i++) {
		const struct model_tool *tool = &request->tools[i];

		(void)buf_addf(body, "%s{\"type\":\"function\",\"function\":{\"name\":",
			       separator);
		(void)value_quote(str_of(tool->name), body);
		(void)buf_adds(body, ",\"description\":");
		(void)value_quote(str_of(tool->description), body);
		(void)buf_adds(body, ",\"parameters\":");
		request_add_schema(tool, body);
		(void)buf_adds(body, "}}");
		separator = ",";
	}
	if (request->tool_count > 0)
		(void)buf_addc(body, ']');
}

bool openai_chat_write(const struct provider_settings *settings,
		       const struct model_request *request, struct buf *body,
		       struct err *err)
{
	(void)buf_adds(body, "{\"model\":");
	(void)value_quote(str_of(settings->model), body);
	(void)buf_adds(body, ",\"messages\":");
	write_messages(request->conversation, body);
	openai_chat_write_tools(request, body);
	if (settings->temperature >= 0 &&
	    openai_family_of(settings->model) != OPENAI_REASONS) {
		auto_value struct value *number = value_new_real(settings->temperature);

		(void)buf_adds(body, ",\"temperature\":");
		(void)value_print(number, 0, body);
	}
	(void)buf_adds(body,
		       ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}");
	return request_fits(body, err);
}
