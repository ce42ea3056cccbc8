/* Tests of model/conversation. */
#include "../base/unit.h"

#include "model/conversation.h"

static void an_empty_one_can_be_ended_twice(void **state)
{
	struct conversation conversation;

	(void)state;
	conversation_init(&conversation);
	assert_null(conversation.system_prompt);
	assert_int_equal(conversation.message_count, 0);
	conversation_fini(&conversation);
	assert_null(conversation.messages);
	conversation_fini(&conversation);
	assert_null(conversation.messages);
	assert_int_equal(conversation.message_count, 0);
	conversation_fini(NULL);
}

static void keeps_copies_of_all_it_is_told(void **state)
{
	char text[] = "hello";
	struct conversation conversation;
	struct message *message;
	struct value *extra = value_new_object();
	struct part *part;

	(void)state;
	conversation_init(&conversation);
	conversation_set_system(&conversation, "old");
	conversation_set_system(&conversation, conversation.system_prompt);
	assert_string_equal(conversation.system_prompt, "old");
	conversation_set_system(&conversation, NULL);
	assert_null(conversation.system_prompt);

	message = conversation_add(&conversation, SPEAKER_USER);
	(void)message_add_text(message, text);
	text[0] = 'X';
	message = conversation_add(&conversation, SPEAKER_MODEL);
	(void)message_add_thinking(message, "hm", extra);
	(void)message_add_call(message, "id", "bash", "{}");
	message = conversation_add(&conversation, SPEAKER_USER);
	part = message_add_result(message, "id", "bash", "ok", true);

	assert_true(part->is_error);
	assert_string_equal(part->text, "ok");
	assert_int_equal(conversation.message_count, 3);
	assert_string_equal(conversation.messages[0].parts[0].text, "hello");
	assert_int_equal(conversation.messages[1].part_count, 2);
	assert_ptr_equal(conversation.messages[1].parts[0].extra, extra);
	assert_string_equal(conversation.messages[1].parts[1].arguments, "{}");
	assert_null(conversation.messages[1].parts[1].text);
	conversation_fini(&conversation);
}

static void grows_past_every_doubling(void **state)
{
	struct conversation conversation;

	(void)state;
	conversation_init(&conversation);
	for (int i = 0; i < 100; i++) {
		struct message *message = conversation_add(&conversation, SPEAKER_USER);

		for (int n = 0; n < i; n++)
			(void)message_add_text(message, "x");
	}
	assert_int_equal(conversation.message_count, 100);
	for (size_t i = 0; i < 100; i++) {
		assert_int_equal(conversation.messages[i].part_count, i);
		for (size_t n = 0; n < i; n++)
			assert_string_equal(conversation.messages[i].parts[n].text, "x");
	}
	conversation_fini(&conversation);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_one_can_be_ended_twice),
		cmocka_unit_test(keeps_copies_of_all_it_is_told),
		cmocka_unit_test(grows_past_every_doubling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
