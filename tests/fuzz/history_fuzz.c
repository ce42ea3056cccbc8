/*
 * Fuzz target of agent/history: lines as a journal has them, whatever they hold. What was
 * taken must settle, and a message of it must survive being written and read again.
 */
#include "agent/history.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = {(const char *)data, size};
	struct history history;
	struct str line;

	history_init(&history);
	while (str_next_line(&rest, &line))
		(void)history_line(&history, line, NULL);
	history_settle(&history);
	if (history.result_count > 0)
		abort();
	for (size_t i = 0; i < history.conversation.message_count; i++) {
		if (history.conversation.messages[i].speaker == SPEAKER_MODEL)
			read_again(&history.conversation.messages[i]);
	}
	history_fini(&history);
	return 0;
}
