/*
 * Fuzz target of agent/history: lines as a journal has them, whatever they hold. What was
 * taken must settle, and a message of it must survive being written and read again. It is a
 * conversation that may be sent, before and after a summary: each call is followed by its
 * result, and by one.
 */
#include "agent/history.h"
#include "base/value.h"
#include "tool/event.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of what a summary is made of: more than compaction_for(1000) gives. */
enum { PRINTED_MAX = 1 << 20 };

static void read_again(const struct message *message)
{
	auto_value struct value *data = history_message_value(message);
	const struct event event = {.kind = EVENT_MESSAGE, .data = data};
	struct history history;

	history_init(&history);
	if (!history_event(&history, &event, NULL) ||
	    history.conversation.messages[0].part_count != message->part_count)
		abort();
	history_fini(&history);
}

static size_t count_parts(const struct message *message, enum part_kind kind)
{
	size_t count = 0;

	for (size_t i = 0; i < message->part_count; i++)
		count += message->parts[i].kind == kind;
	return count;
}

static void check_history(const struct history *history)
{
	const struct conversation *conversation = &history->conversation;
	size_t due = 0, bytes = 0;

	for (size_t i = 0; i < conversation->message_count; i++) {
		const struct message *message = &conversation->messages[i];

		assert(count_parts(message, PART_RESULT) == due);
		due = message->speaker == SPEAKER_MODEL ? count_parts(message, PART_CALL)
							: 0;
		bytes += history_message_bytes(message);
	}
	assert(due == 0);
	assert(history->bytes == bytes);
	for (size_t i = 0; i < history->prompt_count; i++) {
		const struct history_prompt *prompt = &history->prompts[i];

		assert(prompt->message < conversation->message_count);
		assert(prompt->part < conversation->messages[prompt->message].part_count);
		assert(conversation->messages[prompt->message].parts[prompt->part].kind ==
		       PART_TEXT);
	}
}

static void check_cut(struct history *history)
{
	struct compaction compaction = compaction_for(1000);
	size_t cut = compaction_cut(history, &compaction, 0);
	struct buf out;

	if (cut == 0)
		return;
	buf_init(&out, PRINTED_MAX);
	compaction_print(&history->conversation, cut, &compaction, &out);
	history_compact(history, cut, buf_str(&out), STR("tasks"), compaction.pinned_max);
	buf_fini(&out);
	check_history(history);
}

/* The event in one line of the journal, added to HISTORY. */
static bool read_line(struct history *history, struct str json, struct err *err)
{
	auto_value struct value *line = NULL;
	struct event event;

	return event_parse(json, &line, &event, err) && history_event(history, &event, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = {(const char *)data, size};
	struct history history;
	struct str line;

	history_init(&history);
	while (str_next_line(&rest, &line))
		(void)read_line(&history, line, NULL);
	history_settle(&history);
	if (history.result_count > 0)
		abort();
	for (size_t i = 0; i < history.conversation.message_count; i++) {
		if (history.conversation.messages[i].speaker == SPEAKER_MODEL)
			read_again(&history.conversation.messages[i]);
	}
	check_history(&history);
	check_cut(&history);
	history_fini(&history);
	return 0;
}
