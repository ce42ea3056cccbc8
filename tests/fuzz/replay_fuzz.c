/*
 * Fuzz target of model/replay: the bytes are a script. One that is taken is played for a few
 * turns, with a result for every call; one that is refused must say why.
 */
#include "model/provider.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TURNS = 4 };

static void check(bool holds)
{
	if (!holds)
		abort();
}

static bool play_turn(struct replay *replay, struct conversation *conversation)
{
	struct model_request request = {.conversation = conversation, .stop_fd = -1};
	struct answer *answer = answer_new(NULL);
	struct err err = {0};
	bool ok = replay_ask(replay, &request, answer, &err);

	if (ok)
		check(answer_finish(answer, conversation, NULL, NULL, &err));
	else
		check(err.code == EPROTO && err.text[0] != '\0');
	answer_free(answer);
	return ok;
}

static void add_results(struct conversation *conversation)
{
	size_t asked = conversation->message_count - 1;

	(void)conversation_add(conversation, SPEAKER_USER);
	for (size_t i = 0; i < conversation->messages[asked].part_count; i++) {
		const struct part *part = &conversation->messages[asked].parts[i];

		if (part->kind == PART_CALL)
			(void)message_add_result(&conversation->messages[asked + 1],
						 part->call_id, part->tool,
						 part->arguments, i % 2 == 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str script = {(const char *)data, size};
	struct replay *replay = NULL;
	struct conversation conversation;
	struct err err = {0};

	/* Nobody wants to wait for it; an escape could hide the word. */
	if (str_find(script, STR("delay_ms"), 0) != (size_t)-1 ||
	    str_find(script, STR("\\u"), 0) != (size_t)-1)
		return 0;
	if (!replay_open(script, "fuzz", &replay, &err)) {
		check(err.text[0] != '\0');
		return 0;
	}
	conversation_init(&conversation);
	(void)message_add_text(conversation_add(&conversation, SPEAKER_USER), "go");
	for (int turn = 0; turn < TURNS && play_turn(replay, &conversation); turn++)
		add_results(&conversation);
	conversation_fini(&conversation);
	replay_close(replay);
	return 0;
}
