/* Tests of model/answer: what streams, ceilings, and the slot rule's corners. */
#include "../base/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "model/answer.h"

static void note_text(void *context, struct str fragment)
{
	(void)buf_addf(context, "t(%.*s)", (int)fragment.size, fragment.data);
}

static void note_thinking(void *context, struct str fragment)
{
	(void)buf_addf(context, "h(%.*s)", (int)fragment.size, fragment.data);
}

static void note_call(void *context, const char *tool)
{
	(void)buf_addf(context, "c(%s)", tool);
}

static void add(struct answer *answer, int64_t index, const char *id, const char *name,
		const char *arguments)
{
	answer_add_call(answer, index, str_of(id), str_of(name), str_of(arguments));
}

static void fragments_go_on_at_once(void **state)
{
	struct buf log;
	struct model_sink sink = {.context = &log,
				  .text = note_text,
				  .thinking = note_thinking,
				  .call = note_call};
	struct answer *answer = answer_new(&sink);

	(void)state;
	buf_init(&log, 1000);
	answer_add_thinking(answer, STR("hm"));
	answer_add_text(answer, STR("a"));
	answer_add_text(answer, STR(""));
	answer_add_text(answer, STR("b"));
	add(answer, 0, "1", "", "");
	add(answer, 0, "1", "bash", "{");
	add(answer, 0, "", "", "}");
	add(answer, 0, "2", "glob", "");
	assert_string_equal(log.data, "h(hm)t(a)t(b)c(bash)c(glob)");
	buf_fini(&log);
	answer_free(answer);
}

static void callbacks_may_be_missing(void **state)
{
	struct model_sink sink = {0};
	struct answer *answer = answer_new(&sink);

	(void)state;
	answer_add_thinking(answer, STR("hm"));
	answer_add_text(answer, STR("a"));
	add(answer, 0, "1", "bash", "");
	answer_free(answer);
	answer_free(NULL);
}

static void blanks_are_no_content(void **state)
{
	struct answer *answer = answer_new(NULL);

	(void)state;
	assert_false(answer_has_content(answer));
	answer_add_text(answer, STR(" \n"));
	assert_false(answer_has_content(answer));
	add(answer, 0, "", "", "");
	assert_false(answer_has_content(answer));
	answer_add_thinking(answer, STR("x"));
	assert_true(answer_has_content(answer));
	answer_free(answer);
}

static void wholeness_looks_inside_strings(void **state)
{
	static const struct {
		const char *arguments;
		bool whole;
	} cases[] = {
		{"", true},
		{"{}", true},
		{"{", false},
		{"{\"a\":\"}\"", false},
		{"{\"a\":\"}\"}", true},
		{"{\"a\":\"\\\"}\"", false},
		{"[{}", false},
		{"nonsense", false},
		{" {\"a\":[1,{\"b\":2}]} ", true},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		struct answer *answer = answer_new(NULL);

		assert_false(answer_calls_are_whole(answer));
		add(answer, 0, "1", "f", "");
		for (const char *at = cases[i].arguments; *at; at++)
			answer_add_call(answer, 0, STR(""), STR(""), (struct str){at, 1});
		assert_int_equal(answer_calls_are_whole(answer), cases[i].whole);
		answer_free(answer);
	}
}

static void parts_stand_in_the_order_of_their_beginning(void **state)
{
	struct conversation conversation;
	struct answer *answer = answer_new(NULL);
	const struct message *message;

	(void)state;
	conversation_init(&conversation);
	answer_add_text(answer, STR("one"));
	answer_add_thinking(answer, STR("two"));
	add(answer, -1, "", "f", "{}");
	answer_add_text(answer, STR("three"));
	assert_true(answer_finish(answer, &conversation, NULL, NULL, NULL));
	message = &conversation.messages[0];
	assert_int_equal(message->speaker, SPEAKER_MODEL);
	assert_int_equal(message->part_count, 4);
	assert_int_equal(message->parts[0].kind, PART_TEXT);
	assert_int_equal(message->parts[1].kind, PART_THINKING);
	assert_int_equal(message->parts[2].kind, PART_CALL);
	assert_string_equal(message->parts[3].text, "three");
	answer_free(answer);
	conversation_fini(&conversation);
}

static void refuses_to_grow_beyond_its_ceiling(void **state)
{
	enum { PIECE = 1 << 20 };
	char *piece = calloc(1, PIECE);
	struct conversation conversation;
	struct answer *answer = answer_new(NULL);
	struct err err = {0};

	(void)state;
	assert_non_null(piece);
	conversation_init(&conversation);
	memset(piece, 'x', PIECE);
	for (int i = 0; i < MODEL_ANSWER_MAX / PIECE; i++)
		answer_add_call(answer, 0, STR(""), STR(""), (struct str){piece, PIECE});
	assert_true(answer_fits(answer, &err));
	answer_add_text(answer, STR("x"));
	assert_false(answer_fits(answer, &err));
	assert_false(answer_finish(answer, &conversation, NULL, NULL, &err));
	assert_int_equal(err.code, EIO);
	assert_int_equal(conversation.message_count, 0);
	answer_free(answer);
	conversation_fini(&conversation);
	free(piece);
}

static void refuses_more_calls_than_anybody_makes(void **state)
{
	struct answer *answer = answer_new(NULL);

	(void)state;
	for (int i = 0; i < ANSWER_CALLS_MAX; i++)
		add(answer, i, "", "f", "{}");
	assert_true(answer_fits(answer, NULL));
	add(answer, ANSWER_CALLS_MAX, "", "f", "{}");
	assert_false(answer_fits(answer, NULL));
	answer_free(answer);
}

static void made_ids_never_meet_given_ones(void **state)
{
	struct conversation conversation;
	struct answer *answer = answer_new(NULL);
	const struct part *parts;

	(void)state;
	conversation_init(&conversation);
	add(answer, 0, "", "f", "{}");
	add(answer, 1, "call_0_1", "f", "{}");
	add(answer, 2, "", "f", "{}");
	assert_true(answer_finish(answer, &conversation, NULL, NULL, NULL));
	parts = conversation.messages[0].parts;
	assert_string_equal(parts[0].call_id, "call_0_2");
	assert_string_equal(parts[1].call_id, "call_0_1");
	assert_string_equal(parts[2].call_id, "call_0_3");
	answer_free(answer);
	conversation_fini(&conversation);
}

static void extra_stays_with_its_thinking(void **state)
{
	struct conversation conversation;
	struct answer *answer = answer_new(NULL);
	const struct part *part;

	(void)state;
	conversation_init(&conversation);
	value_set_text(answer_thinking_extra(answer), "key", "kept");
	answer_add_thinking(answer, STR("hm"));
	assert_true(answer_finish(answer, &conversation, NULL, NULL, NULL));
	assert_int_equal(conversation.messages[0].part_count, 1);
	part = &conversation.messages[0].parts[0];
	assert_string_equal(part->text, "hm");
	assert_string_equal(value_text(value_member(part->extra, "key")), "kept");
	answer_free(answer);
	conversation_fini(&conversation);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fragments_go_on_at_once),
		cmocka_unit_test(callbacks_may_be_missing),
		cmocka_unit_test(blanks_are_no_content),
		cmocka_unit_test(wholeness_looks_inside_strings),
		cmocka_unit_test(parts_stand_in_the_order_of_their_beginning),
		cmocka_unit_test(refuses_to_grow_beyond_its_ceiling),
		cmocka_unit_test(refuses_more_calls_than_anybody_makes),
		cmocka_unit_test(made_ids_never_meet_given_ones),
		cmocka_unit_test(extra_stays_with_its_thinking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
