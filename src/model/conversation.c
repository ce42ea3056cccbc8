/* conversation: messages and their parts, in arrays that double when they are full. */
#include "model/conversation.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/*
 * Room for one more in ARRAY of COUNT. Its capacity is the next power of two, never kept.
 */
static void *array_make_room(void *array, size_t count, size_t size)
{
	if (count == 0)
		return memory_grow(array, 1, size);
	if ((count & (count - 1)) == 0)
		return memory_grow(array, count * 2, size);
	return array;
}

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
		array_make_room(conversation->messages, conversation->message_count,
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

	message->parts = array_make_room(message->parts, message->part_count,
					 sizeof(*message->parts));
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
	/* Once, not for each request that has it in its history. */
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
