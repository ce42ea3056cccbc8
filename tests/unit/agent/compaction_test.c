/* compaction: when, where it cuts, and what is printed of what goes. */
#include "agent/history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void a_share_of_the_context_stays_free(void **state)
{
	(void)state;
	assert_int_equal(compaction_for(100000).free, 16000);
	assert_int_equal(compaction_for(200000).free, 30000);
	assert_int_equal(compaction_for(200000).kept, 20000);
	assert_true(compaction_due(200000, 170001));
	assert_false(compaction_due(200000, 170000));
	assert_false(compaction_due(0, UINT32_MAX));
}

/* With the numbers of a large one it would summarise at every step. */
static void a_small_model_has_smaller_shares(void **state)
{
	(void)state;
	assert_int_equal(compaction_for(8192).free, 4096);
	assert_int_equal(compaction_for(8192).kept, 2048);
	assert_true(compaction_for(8192).text_max <= (8192 - 4096) * 2);
	assert_false(compaction_due(8192, 4096));
}

static void say(struct history *history, int64_t number, bool model, size_t size)
{
	auto_value struct value *data = NULL;
	struct event event = {.number = number};
	char *text = malloc(size + 1);

	memset(text, 'x', size);
	text[size] = '\0';
	if (model) {
		struct conversation made;
		struct message *message;

		conversation_init(&made);
		message = conversation_add(&made, SPEAKER_MODEL);
		message_add_text(message, text);
		message_add_call(message, "c1", "bash", "{}");
		data = history_message_value(message);
		conversation_fini(&made);
		event.kind = EVENT_MESSAGE;
		event.data = data;
	} else {
		event.kind = EVENT_TURN_BEGAN;
		event.text = str_of(text);
	}
	assert_true(history_event(history, &event, NULL));
	free(text);
}

static void the_end_stays_from_an_answer_on(void **state)
{
	struct compaction compaction = {.kept = 120};
	struct history history;

	(void)state;
	history_init(&history);
	for (int64_t i = 0; i < 10; i++)
		say(&history, i + 1, i % 2 == 1, 120);
	/* 31 tokens an answer, 53 a prompt with the results before it. */
	assert_int_equal(compaction_cut(&history, &compaction, 0), 7);
	assert_int_equal(compaction_cut(&history, &compaction, 150), 7);
	assert_int_equal(compaction_cut(&history, &compaction, 1000), 0);
	compaction.kept = 1;
	assert_int_equal(compaction_cut(&history, &compaction, 0), 9);
	compaction.kept = 100000;
	assert_int_equal(compaction_cut(&history, &compaction, 0), 0);
	history_fini(&history);
}

static void a_single_exchange_is_not_cut(void **state)
{
	struct compaction compaction = {.kept = 1};
	struct history history;

	(void)state;
	history_init(&history);
	assert_int_equal(compaction_cut(&history, &compaction, 0), 0);
	say(&history, 1, false, 500);
	assert_int_equal(compaction_cut(&history, &compaction, 0), 0);
	say(&history, 2, true, 500);
	say(&history, 3, false, 500);
	assert_int_equal(compaction_cut(&history, &compaction, 0), 0);
	history_fini(&history);
}

static void an_answer_broken_off_is_not_parted_from_its_rest(void **state)
{
	struct compaction compaction = {.kept = 1};
	struct history history;

	(void)state;
	history_init(&history);
	say(&history, 1, false, 50);
	say(&history, 2, true, 50);
	say(&history, 3, false, 50);
	say(&history, 4, true, 50);
	(void)conversation_add(&history.conversation, SPEAKER_MODEL);
	assert_int_equal(compaction_cut(&history, &compaction, 0), 3);
	history_fini(&history);
}

static void long_results_are_printed_in_part(void **state)
{
	struct compaction compaction = {.text_max = 1 << 20};
	struct conversation conversation;
	struct message *message;
	struct buf out;
	char *large = malloc(100001);

	(void)state;
	for (size_t i = 0; i < 50000; i++)
		memcpy(large + 2 * i, "ä", 2);
	large[100000] = '\0';
	conversation_init(&conversation);
	message = conversation_add(&conversation, SPEAKER_MODEL);
	message_add_thinking(message, "secret", NULL);
	message_add_text(message, "I look.");
	message_add_call(message, "c1", "bash", "{\"command\":\"ls\"}");
	message = conversation_add(&conversation, SPEAKER_USER);
	message_add_result(message, "c1", "bash", large, true);
	buf_init(&out, 1 << 20);
	compaction_print(&conversation, 2, &compaction, &out);
	assert_non_null(strstr(out.data, "# Agent\nI look.\n"));
	assert_non_null(strstr(out.data, "# Call of bash\n{\"command\":\"ls\"}\n"));
	assert_non_null(strstr(out.data, "# Result of bash (failed)\n"));
	assert_non_null(strstr(out.data, "bytes left out"));
	assert_null(strstr(out.data, "secret"));
	assert_true(out.size < 5000);
	compaction.text_max = 300;
	buf_clear(&out);
	compaction_print(&conversation, 2, &compaction, &out);
	assert_true(out.size < 400);
	buf_fini(&out);
	conversation_fini(&conversation);
	free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_share_of_the_context_stays_free),
		cmocka_unit_test(a_small_model_has_smaller_shares),
		cmocka_unit_test(the_end_stays_from_an_answer_on),
		cmocka_unit_test(a_single_exchange_is_not_cut),
		cmocka_unit_test(an_answer_broken_off_is_not_parted_from_its_rest),
		cmocka_unit_test(long_results_are_printed_in_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
