/* conversation: messages and their parts, in arrays that double when they are full. */

#include "model/conversation.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void conversation_init(struct conversation *conversation)
{
	memset(conversation, 0, sizeof(*conversation));
}

static void message_fini(struct message *message)
{
	for (size_t i = 0; i < message->part_count; i++) {
		struct part *part = &message->parts[i];

		free(part->text);
		free(part->call_id);
		free(part->tool);
		free(part->arguments);
		value_free(part->pictures);
		value_free(part->extra);
	}
	free(message->parts);
}

void conversation_fini(struct conversation *conversation)
{
	if (!conversation)
		return;
	for (size_t i = 0; i < conversation->message_count; i++)
		message_fini(&conversation->messages[i]);
	free(conversation->messages);
	free(conversation->system_prompt);
	conversation_init(conversation);
}

void conversation_set_system(struct conversation *conversation, const char *text)
{
	char *copy = memory_copy(text);

	free(conversation->system_prompt);
	conversation->system_prompt = copy;
}

struct message *conversation_add(struct conversation *conversation, enum speaker speaker)
{
	struct message *message;

	conversation->messages =
		memory_more(conversation->messages, conversation->message_count,
			    sizeof(*conversation->messages));
	message = &conversation->messages[conversation->message_count++];
	*message = (struct message){.speaker = speaker};
	return message;
}

void conversation_replace(struct conversation *conversation, size_t count,
			  struct message *take_head)
{
	for (size_t i = 0; i < count; i++)
		message_fini(&conversation->messages[i]);
	memmove(conversation->messages + 1, conversation->messages + count,
		(conversation->message_count - count) * sizeof(*conversation->messages));
	conversation->messages[0] = *take_head;
	conversation->message_count -= count - 1;
	*take_head = (struct message){0};
}

static struct part *message_add_part(struct message *message, enum part_kind kind)
{
	struct part *part;

	message->parts =
		memory_more(message->parts, message->part_count, sizeof(*message->parts));
	part = &message->parts[message->part_count++];
	*part = (struct part){.kind = kind};
	return part;
}

struct part *message_add_text(struct message *message, const char *text)
{
	struct part *part = message_add_part(message, PART_TEXT);

	part->text = memory_copy(text);
	return part;
}

struct part *message_add_thinking(struct message *message, const char *text,
				  struct value *take_extra)
{
	struct part *part = message_add_part(message, PART_THINKING);

	part->text = memory_copy(text);
	part->extra = take_extra;
	return part;
}

struct part *message_add_call(struct message *message, const char *call_id,
			      const char *tool, const char *arguments)
{
	struct part *part = message_add_part(message, PART_CALL);
	auto_value struct value *parsed = NULL;

	part->call_id = memory_copy(call_id);
	part->tool = memory_copy(tool);
	part->arguments = memory_copy(arguments);
	/*
	 * Parse the arguments here once, and not again for each request with this call in
	 * its history.
	 */
	part->is_object = value_parse(str_of(arguments), 0, &parsed, NULL) &&
			  value_kind(parsed) == VALUE_OBJECT;
	return part;
}

struct part *message_add_result(struct message *message, const char *call_id,
				const char *tool, const char *text, bool is_error)
{
	struct part *part = message_add_part(message, PART_RESULT);

	part->call_id = memory_copy(call_id);
	part->tool = memory_copy(tool);
	part->text = memory_copy(text);
	part->is_error = is_error;
	return part;
}

/* Arguments, results and the ceiling, in the same form for every provider. */

enum { EFFORT_LOW_MAX = 2048, EFFORT_MEDIUM_MAX = 8192 };

#define EMPTY_RESULT "(The tool gave no text.)"

bool conversation_is_blank(const char *text)
{
	return str_trim(str_of(text)).size == 0;
}

void conversation_add_arguments(const struct part *call, struct buf *out)
{
	struct str text = str_trim(str_of(call->arguments));

	if (text.size == 0 || str_is(text, "null")) {
		(void)buf_adds(out, "{}");
		return;
	}
	if (call->is_object) {
		(void)buf_addstr(out, text);
		return;
	}
	(void)buf_adds(out, "{\"invalid_arguments\":");
	(void)value_quote(text, out);
	(void)buf_addc(out, '}');
}

void conversation_add_calls(const struct message *message, const char *fields,
			    const char *kept,
			    void (*arguments)(const struct part *call, struct buf *out),
			    struct buf *out)
{
	const char *separator = ",\"tool_calls\":[";
	bool any = false;

	for (size_t i = 0; i < message->part_count; i++) {
		const struct part *part = &message->parts[i];

		if (part->kind != PART_CALL)
			continue;
		(void)buf_addf(out, "%s{\"id\":", separator);
		(void)value_quote(str_of(part->call_id), out);
		(void)buf_addf(out, ",%s\"function\":{\"name\":", fields);
		(void)value_quote(str_of(part->tool), out);
		(void)buf_adds(out, ",\"arguments\":");
		arguments(part, out);
		(void)buf_addc(out, '}');
		if (kept && value_member(part->extra, kept)) {
			(void)buf_addf(out, ",\"%s\":", kept);
			(void)value_print(value_member(part->extra, kept), 0, out);
		}
		(void)buf_addc(out, '}');
		separator = ",";
		any = true;
	}
	if (any)
		(void)buf_addc(out, ']');
}

void conversation_add_schema(const struct model_tool *tool, struct buf *out)
{
	(void)buf_adds(out, tool->schema != NULL
				    ? tool->schema
				    : "{\"type\":\"object\",\"properties\":{}}");
}

const char *conversation_result_text(const struct part *part)
{
	return conversation_is_blank(part->text) ? EMPTY_RESULT : part->text;
}

size_t conversation_add_pictures(const struct part *part, const char *before,
				 const char *between, const char *after, struct buf *out)
{
	const size_t count = value_count(part->pictures);

	for (size_t i = 0; i < count; i++) {
		const struct value *picture = value_item(part->pictures, i);

		(void)buf_adds(out, before);
		(void)buf_addstr(out, value_str(value_member(picture, "mimeType")));
		(void)buf_adds(out, between);
		(void)buf_addstr(out, value_str(value_member(picture, "data")));
		(void)buf_adds(out, after);
	}
	return count;
}

const char *conversation_effort(uint64_t budget)
{
	if (budget <= EFFORT_LOW_MAX)
		return "low";
	return budget <= EFFORT_MEDIUM_MAX ? "medium" : "high";
}

bool conversation_fits(const struct buf *body, struct err *err)
{
	if (body->overflowed)
		return err_set(err, E2BIG,
			       "the conversation is larger than a request may be (%zu MiB)",
			       body->max >> 20);
	return true;
}
