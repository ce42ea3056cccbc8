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
	(void)answer_add_call(answer, index, str_of(id), str_of(name), str_of(arguments));
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
	assert_true(answer_has_content(answer));
	assert_true(answer_size(answer) > 0);
	assert_false(answer_is_finished(answer));
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
			(void)answer_add_call(answer, 0, STR(""), STR(""),
					      (struct str){at, 1});
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
		(void)answer_add_call(answer, 0, STR(""), STR(""),
				      (struct str){piece, PIECE});
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

static struct answer_part *open_part(struct answer *answer, enum part_kind kind,
				     int64_t index, const char *key)
{
	return answer_part(answer, kind, index, str_of(key));
}

static void named_parts_stand_apart(void **state)
{
	struct conversation conversation;
	struct answer *answer = answer_new(NULL);
	const struct message *message;

	(void)state;
	conversation_init(&conversation);
	/* By index, by key, by both, and the newest one when nothing is said. */
	answer_part_add(answer, open_part(answer, PART_THINKING, 0, ""), STR("one"));
	answer_part_add(answer, open_part(answer, PART_THINKING, 1, "b"), STR("two"));
	answer_part_add(answer, open_part(answer, PART_TEXT, -1, "c"), STR("three"));
	answer_part_add(answer, open_part(answer, PART_TEXT, -1, "d"), STR("four"));
	answer_part_add(answer, open_part(answer, PART_THINKING, 0, ""), STR(" more"));
	answer_part_add(answer, open_part(answer, PART_THINKING, -1, "b"), STR(" more"));
	answer_part_add(answer, open_part(answer, PART_TEXT, -1, "c"), STR(" more"));
	answer_part_add(answer, open_part(answer, PART_TEXT, -1, ""), STR(" more"));
	assert_true(answer_finish(answer, &conversation, NULL, NULL, NULL));
	message = &conversation.messages[0];
	assert_int_equal(message->part_count, 4);
	assert_string_equal(message->parts[0].text, "one more");
	assert_string_equal(message->parts[1].text, "two more");
	assert_string_equal(message->parts[2].text, "three more");
	assert_string_equal(message->parts[3].text, "four more");
	answer_free(answer);
	conversation_fini(&conversation);
}

static void names_that_contradict_are_read_as_they_are_meant(void **state)
{
	struct conversation conversation;
	struct answer *answer = answer_new(NULL);
	const struct message *message;

	(void)state;
	conversation_init(&conversation);
	/* An id drawn anew for each event: the index holds. */
	answer_part_add(answer, open_part(answer, PART_TEXT, 3, "a"), STR("on"));
	answer_part_add(answer, open_part(answer, PART_TEXT, 3, "b"), STR("e"));
	answer_part_settle(answer, open_part(answer, PART_TEXT, 3, "c"), STR("one"));
	/* An index that is always the same: after the end of one, the id holds. */
	answer_part_settle(answer, open_part(answer, PART_TEXT, 3, "d"), STR("two"));
	/* What comes late for a part that is complete changes nothing. */
	answer_part_add(answer, open_part(answer, PART_TEXT, 3, "d"), STR("late"));
	answer_part_settle(answer, open_part(answer, PART_TEXT, 3, "d"), STR("late"));
	/* The same index of another kind is another part. */
	answer_part_add(answer, open_part(answer, PART_THINKING, 3, "d"), STR("hm"));
	assert_true(answer_finish(answer, &conversation, NULL, NULL, NULL));
	message = &conversation.messages[0];
	assert_int_equal(message->part_count, 3);
	assert_string_equal(message->parts[0].text, "one");
	assert_string_equal(message->parts[1].text, "two");
	assert_string_equal(message->parts[2].text, "hm");
	answer_free(answer);
	conversation_fini(&conversation);
}

static void the_end_of_a_part_is_its_truth(void **state)
{
	struct conversation conversation;
	struct buf log;
	struct model_sink sink = {.context = &log,
				  .text = note_text,
				  .thinking = note_thinking,
				  .call = note_call};
	struct answer *answer = answer_new(&sink);
	const struct message *message;
	struct answer_part *part;

	(void)state;
	buf_init(&log, 1000);
	conversation_init(&conversation);
	part = open_part(answer, PART_TEXT, 0, "");
	answer_part_add(answer, part, STR("Hel"));
	answer_part_settle(answer, part, STR("Hello"));
	part = open_part(answer, PART_TEXT, 1, "");
	answer_part_add(answer, part, STR("wrong"));
	answer_part_settle(answer, part, STR("right"));
	part = open_part(answer, PART_CALL, 2, "");
	answer_part_call(answer, part, STR(""), STR("bash"));
	answer_part_add(answer, part, STR("{\"a\": 1}"));
	assert_true(answer_calls_are_whole(answer));
	answer_part_call(answer, part, STR("id"), STR("bash"));
	answer_part_settle(answer, part, STR("{\"a\": "));
	assert_false(answer_calls_are_whole(answer));
	assert_string_equal(log.data, "t(Hel)t(lo)t(wrong)c(bash)");
	assert_true(answer_finish(answer, &conversation, NULL, NULL, NULL));
	message = &conversation.messages[0];
	assert_string_equal(message->parts[0].text, "Hello");
	assert_string_equal(message->parts[1].text, "right");
	assert_string_equal(message->parts[2].call_id, "id");
	assert_string_equal(message->parts[2].arguments, "{\"a\": ");
	buf_fini(&log);
	answer_free(answer);
	conversation_fini(&conversation);
}

static void what_is_kept_goes_with_its_part(void **state)
{
	struct conversation conversation;
	struct answer *answer = answer_new(NULL);
	const struct message *message;
	struct answer_part *part;

	(void)state;
	conversation_init(&conversation);
	part = open_part(answer, PART_THINKING, 0, "");
	answer_part_keep(answer, part, "k", value_new_text("1"), 1);
	part = open_part(answer, PART_TEXT, 1, "");
	answer_part_keep(answer, part, "k", value_new_text("blank"), 5);
	part = open_part(answer, PART_TEXT, 2, "");
	answer_part_settle(answer, part, STR("x"));
	answer_part_keep(answer, part, "k", value_new_text("2"), 1);
	part = open_part(answer, PART_CALL, 3, "");
	answer_part_call(answer, part, STR("a"), STR("f"));
	answer_part_keep(answer, part, "k", value_new_text("3"), 1);
	assert_true(answer_finish(answer, &conversation, NULL, NULL, NULL));
	message = &conversation.messages[0];
	assert_int_equal(message->part_count, 3);
	for (int i = 0; i < 3; i++) {
		const char *kept = value_text(value_member(message->parts[i].extra, "k"));

		assert_int_equal(kept[0], '1' + i);
	}
	answer_free(answer);
	conversation_fini(&conversation);
}

static void parts_that_begin_are_new_and_may_overlap(void **state)
{
	struct conversation conversation;
	struct answer *answer = answer_new(NULL);
	const struct message *message;
	struct answer_part *part;

	(void)state;
	conversation_init(&conversation);
	assert_null(answer_part_open(answer, 0));
	assert_null(answer_part_open(answer, -1));
	(void)answer_part_begin(answer, PART_TEXT, 0);
	(void)answer_part_begin(answer, PART_THINKING, 1);
	answer_part_add(answer, answer_part_open(answer, 0), STR("one"));
	answer_part_add(answer, answer_part_open(answer, 1), STR("hm"));
	answer_part_add(answer, answer_part_open(answer, -1), STR(", hm"));
	assert_int_equal(answer_part_kind(answer_part_open(answer, 1)), PART_THINKING);
	answer_part_settle(answer, answer_part_open(answer, 1), STR(""));
	assert_null(answer_part_open(answer, 1));
	(void)answer_part_begin(answer, PART_TEXT, 0);
	part = answer_part_open(answer, 0);
	answer_part_add(answer, part, STR("two"));
	assert_true(answer_finish(answer, &conversation, NULL, NULL, NULL));
	message = &conversation.messages[0];
	assert_int_equal(message->part_count, 3);
	assert_string_equal(message->parts[0].text, "one");
	assert_string_equal(message->parts[1].text, "hm, hm");
	assert_string_equal(message->parts[2].text, "two");
	answer_free(answer);
	conversation_fini(&conversation);
}

static void what_is_collected_is_not_shown_and_has_a_ceiling(void **state)
{
	enum { PIECE = 1 << 20 };
	char *piece = calloc(1, PIECE);
	struct answer *answer = answer_new(NULL);
	struct answer_part *part = answer_part_begin(answer, PART_THINKING, 0);
	int pieces = 0;

	(void)state;
	assert_non_null(piece);
	answer_part_collect(answer, part, STR("{\"a\":"));
	answer_part_collect(answer, part, STR("1}"));
	assert_true(str_is(answer_part_collected(part), "{\"a\":1}"));
	assert_false(answer_has_content(answer));
	while (answer_fits(answer, NULL)) {
		answer_part_collect(answer, part, (struct str){piece, PIECE});
		pieces++;
	}
	assert_int_equal(pieces, MODEL_ANSWER_MAX / PIECE);
	answer_part_collect(answer, NULL, STR("x"));
	assert_int_equal(answer_part_collected(NULL).size, 0);
	assert_null(answer_part_kept(NULL, "k"));
	answer_free(answer);
	free(piece);
}

static void a_pause_needs_no_words(void **state)
{
	struct answer *answer = answer_new(NULL);
	struct answer_part *part = answer_part_begin(answer, PART_THINKING, 0);

	(void)state;
	answer_part_keep(answer, part, "k", value_new_text("v"), 1);
	assert_string_equal(value_text(answer_part_kept(part, "k")), "v");
	assert_null(answer_part_kept(part, "l"));
	answer_set_finish(answer, MODEL_FINISH_STOP);
	assert_false(answer_has_content(answer));
	answer_set_finish(answer, MODEL_FINISH_PAUSED);
	assert_true(answer_has_content(answer));
	answer_free(answer);
}

static void named_parts_have_ceilings_too(void **state)
{
	struct answer *answer = answer_new(NULL);
	int count = 0;

	(void)state;
	while (open_part(answer, PART_TEXT, count, ""))
		count++;
	assert_int_equal(count, ANSWER_PARTS_MAX);
	assert_false(answer_fits(answer, NULL));
	answer_free(answer);

	answer = answer_new(NULL);
	answer_part_keep(answer, open_part(answer, PART_TEXT, 0, ""), "k",
			 value_new_text("v"), MODEL_ANSWER_MAX + 1);
	assert_false(answer_fits(answer, NULL));
	assert_null(open_part(answer, PART_TEXT, 1, "key"));
	answer_part_add(answer, NULL, STR("x"));
	answer_part_settle(answer, NULL, STR("x"));
	answer_part_call(answer, NULL, STR("x"), STR("y"));
	answer_part_keep(answer, NULL, "k", value_new_text("v"), 1);
	answer_free(answer);
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
		cmocka_unit_test(named_parts_stand_apart),
		cmocka_unit_test(names_that_contradict_are_read_as_they_are_meant),
		cmocka_unit_test(the_end_of_a_part_is_its_truth),
		cmocka_unit_test(what_is_kept_goes_with_its_part),
		cmocka_unit_test(parts_that_begin_are_new_and_may_overlap),
		cmocka_unit_test(what_is_collected_is_not_shown_and_has_a_ceiling),
		cmocka_unit_test(a_pause_needs_no_words),
		cmocka_unit_test(named_parts_have_ceilings_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
