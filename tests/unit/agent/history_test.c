/* history: events -> conversation, live and from the journal's lines. */
#include "agent/history.h"
#include "base/memory.h"
#include "base/value.h"
#include "tool/event.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void add(struct history *history, struct event event)
{
	struct err err = {0};

	if (!history_event(history, &event, &err))
		fail_msg("%s", err.text);
}

static void add_result(struct history *history, const char *call, const char *status,
		       const char *text)
{
	auto_value struct value *data = value_new_object();

	value_set_text(data, "status", status);
	value_set_text(data, "text", text);
	add(history, (struct event){.kind = EVENT_TOOL_ENDED, .call = call, .data = data});
}

static void add_calls(struct history *history, const char *first, const char *second)
{
	struct conversation made;
	struct message *message;
	struct value *data;

	conversation_init(&made);
	message = conversation_add(&made, SPEAKER_MODEL);
	message_add_text(message, "I look.");
	message_add_call(message, first, "read_file", "{\"path\": \"a\"}");
	message_add_call(message, second, "read_file", "no JSON");
	data = history_message_value(message);
	add(history, (struct event){.kind = EVENT_MESSAGE, .data = data});
	value_free(data);
	conversation_fini(&made);
}

static const struct message *message_at(const struct history *history, size_t at)
{
	assert_true(at < history->conversation.message_count);
	return &history->conversation.messages[at];
}

static void results_join_in_the_order_of_the_calls(void **state)
{
	struct history history;
	const struct message *answers;

	(void)state;
	history_init(&history);
	add(&history, (struct event){.kind = EVENT_TURN_BEGAN, .text = STR("go")});
	add_calls(&history, "x", "y");
	add_result(&history, "y", "failed", "second");
	add_result(&history, "x", "done", "first");
	history_settle(&history);
	assert_int_equal(history.conversation.message_count, 3);
	answers = message_at(&history, 2);
	assert_int_equal(answers->speaker, SPEAKER_USER);
	assert_int_equal(answers->part_count, 2);
	assert_string_equal(answers->parts[0].text, "first");
	assert_string_equal(answers->parts[0].call_id, "x");
	assert_false(answers->parts[0].is_error);
	assert_string_equal(answers->parts[1].text, "second");
	assert_true(answers->parts[1].is_error);
	history_fini(&history);
}

static void a_call_without_a_result_gets_a_sentence(void **state)
{
	struct history history;

	(void)state;
	history_init(&history);
	add_calls(&history, "x", "y");
	add_result(&history, "x", "done", "first");
	add(&history, (struct event){.kind = EVENT_TURN_BEGAN, .text = STR("again")});
	assert_int_equal(message_at(&history, 1)->part_count, 3);
	assert_non_null(strstr(message_at(&history, 1)->parts[1].text, "before this call"));
	assert_true(message_at(&history, 1)->parts[1].is_error);
	assert_string_equal(message_at(&history, 1)->parts[2].text, "again");
	history_fini(&history);
}

static void an_empty_result_becomes_a_sentence(void **state)
{
	struct history history;

	(void)state;
	history_init(&history);
	add_calls(&history, "x", "y");
	add_result(&history, "x", "done", " \n");
	add_result(&history, "y", "done", "");
	history_settle(&history);
	assert_string_equal(message_at(&history, 1)->parts[0].text,
			    "(The tool gave no output.)");
	assert_string_equal(message_at(&history, 1)->parts[1].text,
			    "(The tool gave no output.)");
	history_fini(&history);
}

static void results_of_nobody_and_second_results_add_nothing(void **state)
{
	struct history history;

	(void)state;
	history_init(&history);
	add_result(&history, "early", "done", "none asked");
	add_calls(&history, "x", "y");
	add_result(&history, "x", "done", "first");
	add_result(&history, "x", "done", "once more");
	add_result(&history, "handover", "done", "patch");
	history_settle(&history);
	history_settle(&history);
	assert_int_equal(history.conversation.message_count, 2);
	assert_int_equal(message_at(&history, 1)->part_count, 2);
	assert_string_equal(message_at(&history, 1)->parts[0].text, "first");
	history_fini(&history);
}

static void only_notices_to_the_model_join(void **state)
{
	auto_value struct value *data = value_new_object();
	struct history history;

	(void)state;
	history_init(&history);
	add(&history, (struct event){.kind = EVENT_NOTICE, .text = STR("for the person")});
	assert_int_equal(history.conversation.message_count, 0);
	value_set_boolean(data, "to_model", true);
	add_calls(&history, "x", "y");
	add(&history,
	    (struct event){.kind = EVENT_NOTICE, .text = STR("last step"), .data = data});
	assert_int_equal(history.conversation.message_count, 2);
	assert_string_equal(message_at(&history, 1)->parts[2].text, "last step");
	/* what the person said meanwhile, likewise */
	add(&history, (struct event){.kind = EVENT_STEERED, .text = STR("no docs")});
	assert_int_equal(history.conversation.message_count, 2);
	assert_string_equal(message_at(&history, 1)->parts[3].text, "no docs");
	/* what a check said, likewise */
	add(&history, (struct event){.kind = EVENT_CHECK_ENDED,
				     .text = STR("tests: red"),
				     .data = data});
	assert_string_equal(message_at(&history, 1)->parts[4].text, "tests: red");
	value_set_boolean(data, "to_model", false);
	add(&history, (struct event){.kind = EVENT_CHECK_ENDED, .data = data});
	assert_int_equal(message_at(&history, 1)->part_count, 5);
	history_fini(&history);
}

static void finds_the_calls_it_has(void **state)
{
	struct history history;

	(void)state;
	history_init(&history);
	add_calls(&history, "x", "y");
	assert_true(history_has_call(&history, "y"));
	assert_false(history_has_call(&history, "z"));
	history_fini(&history);
}

/* The event in one line of the journal, added to HISTORY. */
static bool read_line(struct history *history, struct str json, struct err *err)
{
	auto_value struct value *line = NULL;
	struct event event;

	return event_parse(json, &line, &event, err) && history_event(history, &event, err);
}

/* Everything a conversation can hold, once as events and once as the journal's lines. */
static void lines_give_the_same_conversation_as_events(void **state)
{
	auto_value struct value *extra = value_new_object();
	auto_value struct value *told = value_new_object();
	auto_value struct value *result = value_new_object();
	struct conversation made;
	struct message *message;
	struct value *data;
	struct history live, read;
	struct event events[6];
	struct err err = {0};

	(void)state;
	history_init(&live);
	history_init(&read);
	conversation_init(&made);
	value_set_text(extra, "signature", "s\"1");
	message = conversation_add(&made, SPEAKER_MODEL);
	message_add_thinking(message, "hm, \xe2\x80\x9ewell\"", value_ref(extra));
	message_add_text(message, "line\nline");
	message_add_call(message, "call-1", "bash", "{\"command\": \"a\\nb\"}")->extra =
		value_ref(extra);
	data = history_message_value(message);
	value_set_boolean(told, "to_model", true);
	value_set_text(result, "status", "timed_out");
	value_set_text(result, "text", "half\tdone");
	events[0] = (struct event){.kind = EVENT_SESSION_BEGAN};
	events[1] =
		(struct event){.kind = EVENT_TURN_BEGAN, .text = STR("do \xc3\xa4 thing")};
	events[2] = (struct event){.kind = EVENT_MESSAGE, .data = data};
	events[3] = (struct event){.kind = EVENT_TOOL_ENDED,
				   .call = "call-1",
				   .tool = "bash",
				   .data = result};
	events[4] = (struct event){.kind = EVENT_NOTICE, .text = STR("now"), .data = told};
	events[5] = (struct event){.kind = EVENT_TURN_ENDED};
	for (size_t i = 0; i < 6; i++) {
		struct buf line;

		events[i].number = (int64_t)i + 1;
		buf_init(&line, 1 << 20);
		assert_true(event_print(&events[i], &line));
		assert_true(history_event(&live, &events[i], &err));
		if (!read_line(&read, buf_str(&line), &err))
			fail_msg("%s", err.text);
		buf_fini(&line);
	}
	history_settle(&live);
	history_settle(&read);
	assert_int_equal(live.conversation.message_count, 3);
	assert_int_equal(read.conversation.message_count, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct message *a = message_at(&live, i), *b = message_at(&read, i);

		assert_int_equal(a->speaker, b->speaker);
		assert_int_equal(a->part_count, b->part_count);
		for (size_t k = 0; k < a->part_count; k++) {
			const struct part *one = &a->parts[k], *two = &b->parts[k];

			assert_int_equal(one->kind, two->kind);
			assert_int_equal(one->is_error, two->is_error);
			assert_true(str_equal(str_of(one->text), str_of(two->text)));
			assert_true(str_equal(str_of(one->call_id), str_of(two->call_id)));
			assert_true(str_equal(str_of(one->tool), str_of(two->tool)));
			assert_true(str_equal(str_of(one->arguments),
					      str_of(two->arguments)));
			assert_true(value_equal(one->extra, two->extra));
		}
	}
	assert_true(value_equal(message_at(&read, 1)->parts[0].extra, extra));
	assert_true(message_at(&read, 2)->parts[0].is_error);
	value_free(data);
	conversation_fini(&made);
	history_fini(&live);
	history_fini(&read);
}

static void a_damaged_line_is_named(void **state)
{
	static const char *const lines[] = {
		"",
		"{\"event\":\"message\"",
		"{\"event\":\"birthday\",\"n\":1}",
		"{\"n\":1}",
		"{\"event\":\"message\",\"n\":1}",
		"{\"event\":\"message\",\"n\":1,\"parts\":[{\"kind\":\"call\",\"call\":\"x\"}]}",
		"{\"event\":\"message\",\"n\":1,\"parts\":[{\"text\":\"x\"}]}",
		"{\"event\":\"message\",\"n\":1,\"parts\":[7]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct history history;
		struct err err = {0};

		history_init(&history);
		assert_false(read_line(&history, str_of(lines[i]), &err));
		assert_true(err.text[0]);
		history_fini(&history);
	}
}

static struct event numbered(enum event_kind kind, int64_t number, const char *text)
{
	return (struct event){.kind = kind, .number = number, .text = str_of(text)};
}

static void add_answer(struct history *history, int64_t number, const char *text,
		       int64_t input)
{
	auto_value struct value *data = NULL;
	struct value *usage = value_new_object();
	struct conversation made;
	struct message *message;

	conversation_init(&made);
	message = conversation_add(&made, SPEAKER_MODEL);
	message_add_text(message, text);
	data = history_message_value(message);
	value_set_integer(usage, "input", input);
	value_set_integer(usage, "output", 10);
	value_set(data, "usage", usage);
	add(history, (struct event){.kind = EVENT_MESSAGE, .number = number, .data = data});
	conversation_fini(&made);
}

static void add_summary(struct history *history, int64_t from, int64_t pinned_max)
{
	auto_value struct value *data = value_new_object();
	struct event event = {
		.kind = EVENT_COMPACTED,
		.text = STR("What was done."),
		.data = data,
	};

	value_set_integer(data, "from", from);
	value_set_integer(data, "pinned_max", pinned_max);
	add(history, event);
}

static void a_style_holds_although_its_turn_is_taken_back(void **state)
{
	auto_value struct value *data = value_new_object();
	struct rewound_range range = {.from = 1, .to = 3};
	const struct rewound rewound = {.ranges = &range, .count = 1};
	struct event event = {.kind = EVENT_STYLED,
			      .number = 2,
			      .text = STR("Be short."),
			      .data = data};
	struct history history;
	struct err err;

	(void)state;
	history_init(&history);
	value_set_text(data, "style", "short");
	assert_true(history_replay(&history, &rewound, &event, &err));
	assert_string_equal(history.style, "Be short.");
	assert_string_equal(history.style_name, "short");
	value_set_text(data, "style", "");
	event.text = STR("");
	assert_true(history_event(&history, &event, &err));
	assert_null(history.style);
	assert_null(history.style_name);
	history_fini(&history);
}

static void a_summary_stands_for_what_was_before(void **state)
{
	struct history history;
	const struct message *head;

	(void)state;
	history_init(&history);
	add(&history, numbered(EVENT_TURN_BEGAN, 1, "first prompt"));
	add_answer(&history, 2, "one", 100);
	add(&history, numbered(EVENT_TURN_BEGAN, 3, "second prompt"));
	add_answer(&history, 4, "two", 100);
	add(&history, numbered(EVENT_TURN_BEGAN, 5, "third prompt"));
	add_summary(&history, 4, 1000);
	assert_int_equal(history.conversation.message_count, 3);
	head = message_at(&history, 0);
	assert_int_equal(head->speaker, SPEAKER_USER);
	assert_int_equal(head->part_count, 4);
	assert_string_equal(head->parts[0].text, "first prompt");
	assert_string_equal(head->parts[1].text, "second prompt");
	assert_string_equal(head->parts[3].text, "What was done.");
	assert_string_equal(message_at(&history, 1)->parts[0].text, "two");
	assert_string_equal(message_at(&history, 2)->parts[0].text, "third prompt");

	/* Once more: the old summary goes, the prompts stay. */
	add_answer(&history, 7, "three", 100);
	add_summary(&history, 7, 1000);
	assert_int_equal(history.conversation.message_count, 2);
	head = message_at(&history, 0);
	assert_int_equal(head->part_count, 5);
	assert_string_equal(head->parts[2].text, "third prompt");
	history_fini(&history);
}

static void what_was_taken_back_is_not_said(void **state)
{
	struct rewound_range ranges[] = {{3, 6}, {7, 9}};
	const struct rewound rewound = {.ranges = ranges, .count = 2};
	auto_value struct value *data = value_new_object();
	struct value *items = value_new_array(), *item = value_new_object();
	struct event last = numbered(EVENT_TURN_BEGAN, 10, "third");
	struct history history;

	(void)state;
	value_set_text(item, "name", "a.c");
	value_set_text(item, "text", "int a;");
	value_append(items, item);
	value_set(data, "attached", items);
	last.data = data;
	const struct event events[] = {
		numbered(EVENT_TURN_BEGAN, 1, "first"),
		numbered(EVENT_TURN_BEGAN, 3, "second"),
		numbered(EVENT_INSTRUCTIONS, 4, "Use tabs."),
		numbered(EVENT_STEERED, 5, "more"),
		numbered(EVENT_REWOUND, 6, "second"),
		numbered(EVENT_TURN_BEGAN, 7, "wrong"),
		numbered(EVENT_REWOUND, 9, "wrong"),
		last,
	};
	history_init(&history);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		assert_true(history_replay(&history, &rewound, &events[i], NULL));
	assert_int_equal(history.conversation.message_count, 1);
	assert_int_equal(message_at(&history, 0)->part_count, 3);
	assert_string_equal(message_at(&history, 0)->parts[0].text, "first");
	assert_string_equal(message_at(&history, 0)->parts[1].text, "third");
	assert_string_equal(message_at(&history, 0)->parts[2].text, "a.c:\nint a;");
	assert_string_equal(history.instructions, "Use tabs.");
	history_fini(&history);
}

static void the_first_and_the_newest_prompts_stay(void **state)
{
	struct history history;

	(void)state;
	history_init(&history);
	for (int64_t i = 1; i < 9; i += 2) {
		char text[16];

		(void)snprintf(text, sizeof(text), "prompt %d", (int)i);
		add(&history, numbered(EVENT_TURN_BEGAN, i, text));
		add_answer(&history, i + 1, "yes", 0);
	}
	add_summary(&history, 8, 2 * (int64_t)sizeof("prompt 1"));
	assert_int_equal(message_at(&history, 0)->part_count, 5);
	assert_string_equal(message_at(&history, 0)->parts[0].text, "prompt 1");
	assert_string_equal(message_at(&history, 0)->parts[1].text, "prompt 5");
	assert_string_equal(message_at(&history, 0)->parts[2].text, "prompt 7");
	history_fini(&history);
}

static void a_summary_of_nothing_known_changes_nothing(void **state)
{
	auto_value struct value *data = value_new_object();
	struct event event = {.kind = EVENT_COMPACTED, .text = STR("x"), .data = data};
	struct history history;
	struct err err;

	(void)state;
	history_init(&history);
	add(&history, numbered(EVENT_TURN_BEGAN, 1, "prompt"));
	add_answer(&history, 2, "yes", 0);
	for (int64_t from = -1; from < 2; from++) {
		value_set_integer(data, "from", from);
		assert_false(history_event(&history, &event, &err));
	}
	assert_int_equal(history.conversation.message_count, 2);
	history_fini(&history);
}

static void tokens_are_counted_by_the_service_and_estimated_since(void **state)
{
	struct history history;

	(void)state;
	history_init(&history);
	add(&history, numbered(EVENT_TURN_BEGAN, 1, "eight by"));
	assert_int_equal(history_tokens(&history, 40), (8 + 40) / HISTORY_BYTES_PER_TOKEN);
	add_answer(&history, 2, "yes", 100);
	assert_int_equal(history_tokens(&history, 40), 110);
	add(&history, numbered(EVENT_TURN_BEGAN, 3, "eight by"));
	assert_int_equal(history_tokens(&history, 40), 110 + 8 / HISTORY_BYTES_PER_TOKEN);
	history_fini(&history);
}

static void what_resuming_says_follows_the_prompt(void **state)
{
	struct history history;

	(void)state;
	history_init(&history);
	add(&history, numbered(EVENT_SESSION_RESUMED, 1, "(anew)"));
	add(&history, numbered(EVENT_SESSION_RESUMED, 2, "(anew)"));
	assert_int_equal(history.conversation.message_count, 0);
	add(&history, numbered(EVENT_TURN_BEGAN, 3, "go on"));
	assert_int_equal(message_at(&history, 0)->part_count, 2);
	assert_string_equal(message_at(&history, 0)->parts[0].text, "go on");
	assert_string_equal(message_at(&history, 0)->parts[1].text, "(anew)");
	add(&history, numbered(EVENT_TURN_BEGAN, 4, "more"));
	assert_int_equal(message_at(&history, 0)->part_count, 3);
	history_fini(&history);
}

/* Add the result of CALL with a JPEG of SIZE bytes, whose last ones are CUT off. */
static void add_picture(struct history *history, const char *call, const char *tool,
			const char *type, size_t size, size_t cut)
{
	static const char head[] = "\xff\xd8\xff\xc0\x00\x07\x08\x00\x01\x00\x01"
				   "\xff\xda\x00\x02";
	auto_value struct value *data = value_new_object();
	struct value *item = value_new_object(), *content = value_new_array();
	auto_free char *bytes = memory_alloc(size);
	struct buf base64;

	memcpy(bytes, head, sizeof(head) - 1);
	memcpy(bytes + size - 2, "\xff\xd9", 2);
	buf_init(&base64, 2 * size);
	assert_true(buf_base64_add((struct str){bytes, size - cut}, &base64));
	value_set_text(item, "type", "image");
	value_set_text(item, "mimeType", type);
	value_set_str(item, "data", buf_str(&base64));
	buf_fini(&base64);
	value_append(content, item);
	value_set_text(data, "status", "done");
	value_set_text(data, "text", "a.png: PNG, 1×1, 3 B");
	value_set(data, "content", content);
	add(history, (struct event){.kind = EVENT_TOOL_ENDED,
				    .call = call,
				    .tool = tool,
				    .data = data});
}

/* Of any tool, a plugin's and another server's as well; but for damaged and unknown ones. */
static void pictures_that_a_service_takes_join(void **state)
{
	struct history history;

	(void)state;
	history_init(&history);
	add_calls(&history, "x", "y");
	add_picture(&history, "x", "read_file", "image/jpeg", 24, 0);
	add_picture(&history, "y", "browser_shot", "image/jpeg", 24, 0);
	history_settle(&history);
	assert_int_equal(value_count(message_at(&history, 1)->parts[0].pictures), 1);
	assert_int_equal(value_count(message_at(&history, 1)->parts[1].pictures), 1);
	assert_string_equal(message_at(&history, 1)->parts[1].text,
			    "a.png: PNG, 1×1, 3 B\n[image, image/jpeg]\n");
	add_calls(&history, "v", "w");
	add_picture(&history, "v", "browser_shot", "image/png", 24, 0);
	add_picture(&history, "w", "browser_shot", "image/jpeg", 24, 1);
	history_settle(&history);
	assert_null(message_at(&history, 3)->parts[0].pictures);
	assert_null(message_at(&history, 3)->parts[1].pictures);
	add_calls(&history, "t", "u");
	add_picture(&history, "t", "browser_shot", "image/tiff", 24, 0);
	add_picture(&history, "u", "browser_shot", "image/jpeg", (15 << 18) + 1, 0);
	history_settle(&history);
	assert_null(message_at(&history, 5)->parts[0].pictures);
	assert_null(message_at(&history, 5)->parts[1].pictures);
	history_fini(&history);
}

/* The number of pictures in HISTORY, and in *FIRST the first message that has one. */
static size_t count_pictures(const struct history *history, size_t *first)
{
	size_t count = 0;

	for (size_t i = history->conversation.message_count; i > 0; i--) {
		const struct message *message = &history->conversation.messages[i - 1];

		for (size_t n = 0; n < message->part_count; n++) {
			const size_t more = value_count(message->parts[n].pictures);

			count += more;
			if (more > 0)
				*first = i - 1;
		}
	}
	return count;
}

static void only_the_newest_pictures_stay(void **state)
{
	struct history history;
	size_t first = 0;

	(void)state;
	history_init(&history);
	for (int i = 0; i < HISTORY_PICTURES + 4; i++) {
		char id[2][16];

		(void)snprintf(id[0], sizeof(id[0]), "a%d", i);
		(void)snprintf(id[1], sizeof(id[1]), "b%d", i);
		add_calls(&history, id[0], id[1]);
		add_picture(&history, id[0], "read_file", "image/jpeg", 24, 0);
		add_result(&history, id[1], "done", "text");
		history_settle(&history);
	}
	assert_int_equal(count_pictures(&history, &first), HISTORY_PICTURES);
	assert_int_equal(first, 2 * 4 + 1);
	assert_true(history_tokens(&history, 0) > HISTORY_PICTURES * HISTORY_PICTURE_TOKENS);
	assert_true(history_tokens(&history, 0) <
		    (HISTORY_PICTURES + 1) * HISTORY_PICTURE_TOKENS);
	/* Three of 5 MiB are in one request, and the fourth takes the place of all older ones. */
	for (int i = 0; i < 4; i++) {
		char id[2][16];

		(void)snprintf(id[0], sizeof(id[0]), "c%d", i);
		(void)snprintf(id[1], sizeof(id[1]), "d%d", i);
		add_calls(&history, id[0], id[1]);
		add_picture(&history, id[0], "read_file", "image/jpeg", 15 << 18, 0);
		add_result(&history, id[1], "done", "text");
		history_settle(&history);
	}
	assert_int_equal(count_pictures(&history, &first), 3);
	history_compact(&history, history.conversation.message_count - 2, STR("summary"),
			STR("behind"), 100);
	assert_int_equal(count_pictures(&history, &first), 1);
	history_fini(&history);
}

/* The words of a prompt outlive a summary, and its pictures go with the older part. */
static void pictures_of_a_prompt_stand_behind_their_names(void **state)
{
	auto_value struct value *data = NULL;
	struct history history;
	const struct message *prompt;
	struct err err = {0};
	size_t bytes = 0;

	(void)state;
	assert_true(
		value_parse(STR("{\"pictures\": [{\"type\": \"image\", \"mimeType\": "
				"\"image/png\", \"data\": \"iVBORw0KGgo=\", \"text\": "
				"\"cut.png: PNG\"}, {\"type\": \"image\", \"mimeType\": "
				"\"image/gif\", \"text\": \"dot.gif: GIF\", \"data\": "
				"\"R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAUwAOw==\"}]}"),
			    0, &data, &err));
	history_init(&history);
	add(&history,
	    (struct event){.kind = EVENT_TURN_BEGAN, .text = STR("look"), .data = data});
	prompt = message_at(&history, 0);
	assert_int_equal(prompt->part_count, 2);
	assert_string_equal(prompt->parts[0].text, "look");
	assert_string_equal(
		prompt->parts[1].text,
		"Pictures that come with this prompt:\n- cut.png: PNG\n- dot.gif: GIF");
	/* A picture that no service would take does not go there. */
	assert_int_equal(value_count(prompt->parts[1].pictures), 1);
	add_calls(&history, "x", "y");
	history_settle(&history);
	add_calls(&history, "u", "v");
	for (size_t i = 0; i < history.conversation.message_count; i++)
		bytes += history_message_bytes(message_at(&history, i));
	assert_int_equal(history.bytes, bytes);
	history_compact(&history, 3, STR("summary"), STR(""), 1000);
	assert_string_equal(message_at(&history, 0)->parts[0].text, "look");
	assert_int_equal(count_pictures(&history, &bytes), 0);
	history_fini(&history);
}

static void add_long_result(struct history *history, const char *call, const char *spill)
{
	auto_value struct value *data = value_new_object();
	struct value *details = value_new_object();
	struct buf text;

	buf_init(&text, 8192);
	(void)buf_adds(&text, "the first line\n");
	for (int i = 0; i < 300; i++)
		(void)buf_adds(&text, "0123456789\n");
	(void)buf_adds(&text, "[exit code 0, 1.5 s; in .]\n");
	value_set_text(data, "status", "done");
	value_set_str(data, "text", buf_str(&text));
	if (spill)
		value_set_text(details, "spill", spill);
	value_set(data, "details", details);
	add(history, (struct event){.kind = EVENT_TOOL_ENDED, .call = call, .data = data});
	buf_fini(&text);
}

static void long_results_are_told_in_short(void **state)
{
	auto_value struct value *data = value_new_object();
	struct history history;
	const struct message *results;
	size_t bytes, before, only;

	(void)state;
	history_init(&history);
	add(&history,
	    (struct event){.kind = EVENT_TURN_BEGAN, .text = STR("go"), .number = 1});
	add_calls(&history, "x", "y");
	add_long_result(&history, "x", NULL);
	add_long_result(&history, "y", "/tmp/7.log");
	history_settle(&history);
	add_calls(&history, "u", "v");
	history.numbers[3] = 9;
	add_long_result(&history, "u", NULL);
	add_result(&history, "v", "done", "short");
	history_settle(&history);
	before = history.bytes;
	assert_int_equal(history_shorten(&history, 3, 2048, true, &only), 2);
	assert_int_equal(history.bytes, before);
	value_set_integer(data, "from", 9);
	value_set_integer(data, "over", 2048);
	add(&history, (struct event){.kind = EVENT_SHORTENED, .data = data});
	assert_true(history.shortened);
	assert_int_equal(history.bytes, before - only);
	before = 0;
	for (size_t i = 0; i < history.conversation.message_count; i++)
		before += history_message_bytes(message_at(&history, i));
	assert_int_equal(history.bytes, before);
	results = message_at(&history, 2);
	assert_non_null(
		strstr(results->parts[0].text, "the first line\n[… 3302 bytes left out"));
	assert_non_null(strstr(results->parts[0].text, "make this call again"));
	assert_non_null(strstr(results->parts[0].text, "]\n[exit code 0, 1.5 s; in .]"));
	assert_non_null(strstr(results->parts[1].text, "kept in /tmp/7.log]"));
	assert_true(strlen(message_at(&history, 4)->parts[0].text) > 3000);
	/* There is nothing left to shorten. */
	assert_int_equal(history_shorten(&history, 3, 2048, false, &bytes), 0);
	assert_int_equal(bytes, 0);
	history_fini(&history);
}

/* The counts of a service hold what is taken out of the messages: they become smaller. */
static void what_is_shortened_is_not_counted_any_more(void **state)
{
	auto_value struct value *data = value_new_object();
	struct history history;

	(void)state;
	history_init(&history);
	add(&history,
	    (struct event){.kind = EVENT_TURN_BEGAN, .text = STR("go"), .number = 1});
	add_calls(&history, "x", "y");
	add_long_result(&history, "x", NULL);
	add_result(&history, "y", "done", "short");
	history_settle(&history);
	add_calls(&history, "u", "v");
	history.numbers[3] = 9;
	history.counted_tokens = 5000;
	history.counted_bytes = history.bytes;
	value_set_integer(data, "from", 9);
	value_set_integer(data, "over", 2048);
	add(&history, (struct event){.kind = EVENT_SHORTENED, .data = data});
	assert_in_range(history_tokens(&history, 0), 4150, 4350);
	history_fini(&history);
}

static void tasks_and_files_stand_behind_a_summary(void **state)
{
	auto_value struct value *data = value_new_object();
	struct value *details = value_new_object(), *list = value_new_array();
	struct value *task = value_new_object(), *seen = value_new_object();
	struct history history;
	struct buf behind;

	(void)state;
	history_init(&history);
	value_set_text(task, "text", "mend the parser");
	value_set_text(task, "state", "active");
	value_append(list, task);
	value_set(details, "todo", list);
	value_set_text(data, "status", "done");
	value_set(data, "details", details);
	for (int i = 0; i < 50; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "/ws/f%02d", i);
		value_set_text(seen, path, "mark");
	}
	value_set_text(seen, "", "/ws/folder");
	value_set_text(seen, "/ws/f45", "again");
	value_set_text(seen, "/wsx/other", "mark");
	value_set(data, "seen", seen);
	add(&history, (struct event){.kind = EVENT_TOOL_ENDED,
				     .call = "x",
				     .tool = "todo",
				     .data = data});
	buf_init(&behind, 8192);
	history_add_behind(&history, "/ws", &behind);
	assert_non_null(strstr(behind.data, "(todo):\n[>] mend the parser\n"));
	assert_non_null(strstr(behind.data, ": f11, f12"));
	assert_non_null(strstr(behind.data, ", f49, /wsx/other\n"));
	assert_null(strstr(behind.data, "folder"));
	buf_fini(&behind);
	history_fini(&history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pictures_that_a_service_takes_join),
		cmocka_unit_test(only_the_newest_pictures_stay),
		cmocka_unit_test(results_join_in_the_order_of_the_calls),
		cmocka_unit_test(a_call_without_a_result_gets_a_sentence),
		cmocka_unit_test(an_empty_result_becomes_a_sentence),
		cmocka_unit_test(results_of_nobody_and_second_results_add_nothing),
		cmocka_unit_test(only_notices_to_the_model_join),
		cmocka_unit_test(finds_the_calls_it_has),
		cmocka_unit_test(lines_give_the_same_conversation_as_events),
		cmocka_unit_test(a_damaged_line_is_named),
		cmocka_unit_test(a_style_holds_although_its_turn_is_taken_back),
		cmocka_unit_test(a_summary_stands_for_what_was_before),
		cmocka_unit_test(what_was_taken_back_is_not_said),
		cmocka_unit_test(the_first_and_the_newest_prompts_stay),
		cmocka_unit_test(a_summary_of_nothing_known_changes_nothing),
		cmocka_unit_test(tokens_are_counted_by_the_service_and_estimated_since),
		cmocka_unit_test(what_resuming_says_follows_the_prompt),
		cmocka_unit_test(pictures_of_a_prompt_stand_behind_their_names),
		cmocka_unit_test(long_results_are_told_in_short),
		cmocka_unit_test(what_is_shortened_is_not_counted_any_more),
		cmocka_unit_test(tasks_and_files_stand_behind_a_summary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
