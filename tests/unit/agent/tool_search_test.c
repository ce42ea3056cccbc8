/* tool_search: the call that call_tool means, and the names in the prompt. */
/* clang-format off: cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
/* clang-format on */

#include "agent/history.h"
#include "agent/tools/tool_search.h"
#include "base/buf.h"
#include "base/memory.h"
#include "base/value.h"
#include "model/conversation.h"

#include <stdlib.h>

static const struct {
	const char *tool, *arguments, *meant, *meant_arguments;
} meanings[] = {
	{"bash", "{\"command\": \"ls\"}", "bash", "{\"command\": \"ls\"}"},
	{"call_tool", "{\"name\": \"s_pay\", \"arguments\": {\"sum\": 1}}", "s_pay",
	 "{\"sum\":1}"},
	{"call_tool", "{\"name\": \"s_pay\"}", "s_pay", "{}"},
	{"call_tool", "{\"tool\": \"s_pay\", \"args\": {\"sum\": 1}}", "s_pay",
	 "{\"sum\":1}"},
	{"call_tool", "{\"name\": \"s_pay\", \"arguments\": \"{\\\"sum\\\": 1}\"}",
	 "s_pay", "{\"sum\":1}"},
	/* Only one call is inside another. */
	{"call_tool", "{\"name\": \"call_tool\", \"arguments\": {\"name\": \"s_pay\"}}",
	 "call_tool", "{\"name\":\"s_pay\"}"},
	/* Arguments that do not fit stay, and are refused as they are. */
	{"call_tool", "{\"arguments\": {\"sum\": 1}}", "call_tool",
	 "{\"arguments\": {\"sum\": 1}}"},
	{"call_tool", "{\"name\": \"s_pay\", \"arguments\": 1}", "call_tool",
	 "{\"name\": \"s_pay\", \"arguments\": 1}"},
	{"call_tool", "{\"name\": ", "call_tool", "{\"name\": "},
	{"call_tool", "", "call_tool", ""},
};

static void a_call_is_taken_out_of_its_arguments(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		struct conversation conversation;
		struct meant meant;

		conversation_init(&conversation);
		tool_search_meant(
			message_add_call(conversation_add(&conversation, SPEAKER_MODEL),
					 "c1", meanings[i].tool, meanings[i].arguments),
			&meant);
		assert_string_equal(meant.tool, meanings[i].meant);
		assert_string_equal(meant.arguments, meanings[i].meant_arguments);
		meant_fini(&meant);
		conversation_fini(&conversation);
	}
}

/* The record has the call that is meant; the conversation that is made of it has call_tool. */
static void the_record_has_the_call_that_is_meant(void **state)
{
	static const char arguments[] = "{\"name\":\"s_pay\",\"arguments\":{\"sum\":1}}";
	auto_value struct value *data = NULL;
	const struct value *recorded;
	struct event event = {.kind = EVENT_MESSAGE};
	struct conversation conversation;
	struct history history;
	struct err err;
	const struct part *part;

	(void)state;
	conversation_init(&conversation);
	(void)message_add_call(conversation_add(&conversation, SPEAKER_MODEL), "c1",
			       "call_tool", arguments);
	data = history_message_value(&conversation.messages[0]);
	conversation_fini(&conversation);
	recorded = value_item(value_member(data, "parts"), 0);
	assert_string_equal(value_text(value_member(recorded, "tool")), "s_pay");
	assert_string_equal(value_text(value_member(recorded, "arguments")), "{\"sum\":1}");
	assert_string_equal(value_text(value_member(recorded, "through")), "call_tool");
	event.data = data;
	history_init(&history);
	assert_true(history_event(&history, &event, &err));
	part = history_call(&history, 0);
	assert_string_equal(part->tool, "call_tool");
	assert_string_equal(part->arguments, arguments);
	history_fini(&history);
}

static void the_prompt_has_a_line_for_each_server(void **state)
{
	static const struct tool ours = {.name = "bash", .description = ""};
	static const struct tool a = {.name = "a_one",
				      .description = "",
				      .server = "a",
				      .defer = DEFER_ALWAYS};
	static const struct tool b = {.name = "b_one",
				      .description = "",
				      .server = "b",
				      .defer = DEFER_ALWAYS};
	static const struct tool other = {.name = "a_two",
					  .description = "",
					  .server = "a",
					  .defer = DEFER_ALWAYS};
	static const struct tool told = {.name = "c_one", .description = "", .server = "c"};
	const struct tool *const tools[] = {&ours, &a, &b, &other, &told, NULL};
	const struct tool *const none[] = {&ours, &told, NULL};
	struct buf text;

	(void)state;
	buf_init(&text, 1 << 20);
	tool_search_prompt(none, &text);
	assert_int_equal(text.size, 0);
	tool_search_prompt(tools, &text);
	assert_true(str_ends(buf_str(&text), STR("\n- a: a_one, a_two\n- b: b_one\n")));
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_taken_out_of_its_arguments),
		cmocka_unit_test(the_record_has_the_call_that_is_meant),
		cmocka_unit_test(the_prompt_has_a_line_for_each_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
