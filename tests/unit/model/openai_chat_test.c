/* Tests of model/openai_chat: the request body, and the messages in error bodies. */
#include <errno.h>
#include <string.h>

#include "request.h"

/* The body for CONVERSATION, parsed. */
static struct value *write_with(const struct conversation *conversation,
				const struct model_tool *tools, size_t tool_count,
				double temperature)
{
	struct provider_settings settings = {.model = "m", .temperature = temperature};
	struct model_request request = {
		.conversation = conversation,
		.tools = tools,
		.tool_count = tool_count,
		.stop_fd = -1,
	};
	struct value *parsed;
	struct buf body;

	buf_init(&body, BODY_MAX);
	parsed = written(&openai_chat_provider, &settings, &request, &body);
	buf_fini(&body);
	return parsed;
}

static void check_messages(const struct conversation *conversation, const char *expected)
{
	auto_value struct value *body = write_with(conversation, NULL, 0, -1);
	auto_value struct value *wanted = json(expected);
	struct buf shown;

	if (value_equal(value_member(body, "messages"), wanted))
		return;
	buf_init(&shown, BODY_MAX);
	(void)value_print(value_member(body, "messages"), 0, &shown);
	fail_msg("%s", shown.data);
}

static void asks_for_a_stream_with_usage(void **state)
{
	struct conversation conversation;
	auto_value struct value *body = NULL;
	auto_value struct value *wanted = json(
		"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"
		"\"temperature\":0.3,\"stream\":true,"
		"\"stream_options\":{\"include_usage\":true}}");

	(void)state;
	conversation_init(&conversation);
	add_user(&conversation, "hi");
	body = write_with(&conversation, NULL, 0, 0.3);
	assert_true(value_equal(body, wanted));
	conversation_fini(&conversation);
}

static void a_temperature_goes_to_those_that_take_one(void **state)
{
	static const struct {
		const char *model;
		bool sent;
	} cases[] = {
		{"gpt-4o", true},      {"gpt-5", false},   {"openai/gpt-5-mini", false},
		{"o3", false},         {"qwen3:8b", true}, {"openai/gpt-oss-20b", true},
		{"codex-mini", false},
	};
	struct conversation conversation;
	struct model_request request = {.conversation = &conversation, .stop_fd = -1};

	(void)state;
	conversation_init(&conversation);
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		struct provider_settings settings = {.model = cases[i].model,
						     .temperature = 0.3};
		struct buf body;

		buf_init(&body, BODY_MAX);
		assert_true(openai_chat_provider.request(&settings, &request, &body, NULL));
		assert_int_equal(str_find(buf_str(&body), STR("\"temperature\":0.3"), 0) !=
					 (size_t)-1,
				 cases[i].sent);
		buf_fini(&body);
	}
	conversation_fini(&conversation);
}

static void an_answer_of_ollama_may_be_shorter_than_others(void **state)
{
	const struct provider_settings settings = {.model = "m",
						   .max_output = 9000,
						   .answer_max = 4000};
	struct conversation conversation;
	struct model_request request = {.conversation = &conversation, .stop_fd = -1};
	auto_value struct value *sent = NULL;
	struct buf body;

	(void)state;
	conversation_init(&conversation);
	buf_init(&body, BODY_MAX);
	assert_true(ollama_provider.request(&settings, &request, &body, NULL));
	sent = json(body.data);
	assert_int_equal(value_integer(value_at_pointer(sent, "/options/num_predict")),
			 4000);
	buf_fini(&body);
	conversation_fini(&conversation);
}

static void an_empty_conversation_is_still_json(void **state)
{
	struct conversation conversation;

	(void)state;
	conversation_init(&conversation);
	check_messages(&conversation, "[]");
	conversation_set_system(&conversation, "be \"good\"\n");
	check_messages(&conversation,
		       "[{\"role\":\"system\",\"content\":\"be \\\"good\\\"\\n\"}]");
	conversation_fini(&conversation);
}

static void tools_go_with_their_schema(void **state)
{
	struct conversation conversation;
	static const char schema[] = "{\"type\":\"object\",\"$defs\":{\"x\":{}}}";
	struct model_tool tools[] = {{"a", "does \"a\"", schema}, {"b", "", NULL}};
	auto_value struct value *body = NULL;
	auto_value struct value *wanted = json(
		"[{\"type\":\"function\",\"function\":{\"name\":\"a\",\"description\":\"does "
		"\\\"a\\\"\",\"parameters\":{\"type\":\"object\",\"$defs\":{\"x\":{}}}}},"
		"{\"type\":\"function\",\"function\":{\"name\":\"b\",\"description\":\"\","
		"\"parameters\":{\"type\":\"object\",\"properties\":{}}}}]");

	(void)state;
	conversation_init(&conversation);
	body = write_with(&conversation, tools, 2, -1);
	assert_true(value_equal(value_member(body, "tools"), wanted));
	assert_null(value_member(body, "temperature"));
	conversation_fini(&conversation);
}

static void calls_and_results_go_back_in_pairs(void **state)
{
	struct conversation conversation;
	struct message *message;

	(void)state;
	conversation_init(&conversation);
	add_user(&conversation, "look");
	message = conversation_add(&conversation, SPEAKER_MODEL);
	(void)message_add_text(message, "I ");
	(void)message_add_text(message, "look.");
	(void)message_add_call(message, "1", "glob", "{\"pattern\":\"*\"}");
	(void)message_add_call(message, "2", "bash", "");
	message = conversation_add(&conversation, SPEAKER_USER);
	(void)message_add_text(message, "Two steps are left.");
	(void)message_add_result(message, "1", "glob", "a.c", false);
	(void)message_add_result(message, "2", "bash", " \n", true);
	add_user(&conversation, "Go on.");
	check_messages(&conversation,
		       "[{\"role\":\"user\",\"content\":\"look\"},"
		       "{\"role\":\"assistant\",\"content\":\"I look.\",\"tool_calls\":["
		       "{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"glob\","
		       "\"arguments\":\"{\\\"pattern\\\":\\\"*\\\"}\"}},"
		       "{\"id\":\"2\",\"type\":\"function\",\"function\":{\"name\":\"bash\","
		       "\"arguments\":\"{}\"}}]},"
		       "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"a.c\"},"
		       "{\"role\":\"tool\",\"tool_call_id\":\"2\",\"content\":"
		       "\"(The tool gave no text.)\"},"
		       "{\"role\":\"user\",\"content\":\"Two steps are left.\\n\\nGo on.\"}]");
	conversation_fini(&conversation);
}

static void arguments_go_back_as_an_object_whatever_was_written(void **state)
{
	static const struct {
		const char *written, *sent;
	} cases[] = {
		{"{\"a\": 1}", "{\"a\": 1}"},
		{" {} ", "{}"},
		{"", "{}"},
		{"null", "{}"},
		{"{\"a\": oops", "{\"invalid_arguments\":\"{\\\"a\\\": oops\"}"},
		{"[1]", "{\"invalid_arguments\":\"[1]\"}"},
		{"bad \xff", "{\"invalid_arguments\":\"bad \xef\xbf\xbd\"}"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		struct conversation conversation;
		auto_value struct value *body = NULL;
		auto_value struct value *parsed = NULL;
		const struct value *message, *call;
		const char *sent;

		conversation_init(&conversation);
		(void)message_add_call(conversation_add(&conversation, SPEAKER_MODEL),
				       "1", "f", cases[i].written);
		body = write_with(&conversation, NULL, 0, -1);
		message = value_item(value_member(body, "messages"), 0);
		assert_int_equal(value_kind(value_member(message, "content")), VALUE_NULL);
		call = value_item(value_member(message, "tool_calls"), 0);
		sent = value_text(value_member(value_member(call, "function"), "arguments"));
		assert_string_equal(sent, cases[i].sent);
		assert_true(value_parse(str_of(sent), 0, &parsed, NULL));
		assert_int_equal(value_kind(parsed), VALUE_OBJECT);
		conversation_fini(&conversation);
	}
}

static void reasoning_goes_back_the_way_it_came(void **state)
{
	struct conversation conversation;
	struct message *message;

	(void)state;
	conversation_init(&conversation);
	message = conversation_add(&conversation, SPEAKER_MODEL);
	(void)message_add_thinking(message, "one",
				   json("{\"field\":\"reasoning_content\"}"));
	(void)message_add_thinking(message, " two", NULL);
	(void)message_add_text(message, "a");
	message = conversation_add(&conversation, SPEAKER_MODEL);
	(void)message_add_thinking(message, "three", json("{\"field\":\"reasoning\"}"));
	(void)message_add_text(message, "b");
	message = conversation_add(&conversation, SPEAKER_MODEL);
	(void)message_add_thinking(
		message, "four",
		json("{\"field\":\"reasoning\",\"reasoning_details\":[{\"text\":\"four\"}]}"));
	(void)message_add_text(message, "c");
	message = conversation_add(&conversation, SPEAKER_MODEL);
	(void)message_add_thinking(message, "five", json("{\"signature\":\"x\"}"));
	(void)message_add_text(message, "d");
	message = conversation_add(&conversation, SPEAKER_MODEL);
	(void)message_add_thinking(message, "six", json("{\"field\":\"role\"}"));
	(void)message_add_text(message, "e");
	check_messages(&conversation,
		       "[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"one two\"},"
		       "{\"role\":\"assistant\",\"content\":\"b\",\"reasoning\":\"three\"},"
		       "{\"role\":\"assistant\",\"content\":\"c\","
		       "\"reasoning_details\":[{\"text\":\"four\"}]},"
		       "{\"role\":\"assistant\",\"content\":\"d\"},"
		       "{\"role\":\"assistant\",\"content\":\"e\"}]");
	conversation_fini(&conversation);
}

static void an_empty_message_of_the_model_is_not_sent(void **state)
{
	struct conversation conversation;

	(void)state;
	conversation_init(&conversation);
	add_user(&conversation, "a");
	(void)conversation_add(&conversation, SPEAKER_MODEL);
	add_user(&conversation, "b");
	check_messages(&conversation, "[{\"role\":\"user\",\"content\":\"a\\n\\nb\"}]");
	conversation_fini(&conversation);
}

static void a_body_over_its_ceiling_is_refused(void **state)
{
	struct conversation conversation;
	struct model_request request = {.conversation = &conversation, .stop_fd = -1};
	struct provider_settings settings = {.model = "m", .temperature = -1};
	struct err err = {0};

	(void)state;
	conversation_init(&conversation);
	(void)message_add_text(conversation_add(&conversation, SPEAKER_USER),
			       "twenty bytes of text");
	for (size_t max = 0; max < 110; max++) {
		struct buf body;

		buf_init(&body, max);
		assert_false(openai_chat_provider.request(&settings, &request, &body, &err));
		assert_int_equal(err.code, E2BIG);
		buf_fini(&body);
	}
	conversation_fini(&conversation);
}

static void error_bodies_of_all_shapes_are_read(void **state)
{
	static const struct {
		const char *body, *message; /* NULL: there is none */
	} cases[] = {
		{"{\"error\":{\"message\":\"m\",\"type\":\"t\",\"code\":\"c\"}}", "m (c)"},
		{"{\"error\":{\"message\":\"m\",\"type\":\"t\",\"code\":400}}", "m (t)"},
		{"{\"error\":{\"message\":\"m\",\"code\":null}}", "m"},
		{"{\"error\":{\"message\":\"m\",\"type\":\"t\"},\"request_id\":\"r\"}",
		 "m (t), request r"},
		{"{\"error\":\"m\"}", "m"},
		{"{\"error\":{\"error\":{\"message\":\"m\"}}}", "m"},
		{"{\"message\":\"m\"}", "m"},
		{"{\"object\":\"error\",\"message\":\"m\",\"type\":\"t\"}", "m (t)"},
		{"{\"detail\":\"m\"}", "m"},
		{"{\"detail\":[{\"loc\":[1],\"msg\":\"m\"},{\"msg\":\"n\"}]}", "m; n"},
		{"{\"msg\":\"m\"}", "m"},
		{"[{\"error\":{\"code\":400,\"message\":\"m\"}}]", "m"},
		{"{\"error\":{\"message\":\"m\",\"metadata\":{\"raw\":\"r\"}}}", "m: r"},
		{"{\"error_description\":\"m\",\"error\":{}}", NULL},
		{"{}", NULL},
		{"[]", NULL},
		{"\"m\"", "m"},
		{"<html>", NULL},
		{"", NULL},
		{"{\"error\":{\"message\":\"m\"}", NULL},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		struct buf out;
		bool found;

		buf_init(&out, 1000);
		found = openai_chat_provider.error(str_of(cases[i].body), &out);
		if (found != (cases[i].message != NULL) ||
		    (found && strcmp(out.data, cases[i].message) != 0))
			fail_msg("%s: \"%s\"", cases[i].body, out.data);
		buf_fini(&out);
	}
}

static void pictures_stand_in_the_message_after_their_result(void **state)
{
	(void)state;
	check_pictures(
		&openai_chat_provider, "messages",
		"[{\"role\":\"user\",\"content\":\"look\"},{\"role\":\"assistant\",\"co"
		"ntent\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\",\"fu"
		"nction\":{\"name\":\"read_file\",\"arguments\":\"{}\"}}]},{\"role\":\""
		"tool\",\"tool_call_id\":\"c1\",\"content\":\"a.png: PNG\"},{\"role\":\""
		"user\",\"content\":[{\"type\":\"text\",\"text\":\"The pictures of the "
		"results above:\"},{\"type\":\"image_url\",\"image_url\":{\"url\":\"dat"
		"a:image/png;base64,iVBO\"}},{\"type\":\"image_url\",\"image_url\":{\"u"
		"rl\":\"data:image/jpeg;base64,/w==\"}},{\"type\":\"text\",\"text\":\"a"
		"nd?\"},{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/gif;"
		"base64,R0lG\"}}]}]");
}

static void pictures_of_ollama_stand_in_a_message_of_their_own(void **state)
{
	(void)state;
	check_pictures(
		&ollama_provider, "messages",
		"[{\"role\":\"user\",\"content\":\"look\"},{\"role\":\"assistant\",\"co"
		"ntent\":\"\",\"tool_calls\":[{\"id\":\"c1\",\"function\":{\"name\":\"r"
		"ead_file\",\"arguments\":{}}}]},{\"role\":\"tool\",\"content\":\"a.png"
		": PNG\",\"tool_name\":\"read_file\",\"tool_call_id\":\"c1\"},{\"role\""
		":\"user\",\"content\":\"The pictures of the results above:\",\"images\""
		":[\"iVBO\",\"/w==\"]},{\"role\":\"user\",\"content\":\"and?\",\"images\":"
		"[\"R0lG\"]}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pictures_of_ollama_stand_in_a_message_of_their_own),
		cmocka_unit_test(pictures_stand_in_the_message_after_their_result),
		cmocka_unit_test(asks_for_a_stream_with_usage),
		cmocka_unit_test(a_temperature_goes_to_those_that_take_one),
		cmocka_unit_test(an_answer_of_ollama_may_be_shorter_than_others),
		cmocka_unit_test(an_empty_conversation_is_still_json),
		cmocka_unit_test(tools_go_with_their_schema),
		cmocka_unit_test(calls_and_results_go_back_in_pairs),
		cmocka_unit_test(arguments_go_back_as_an_object_whatever_was_written),
		cmocka_unit_test(reasoning_goes_back_the_way_it_came),
		cmocka_unit_test(an_empty_message_of_the_model_is_not_sent),
		cmocka_unit_test(a_body_over_its_ceiling_is_refused),
		cmocka_unit_test(error_bodies_of_all_shapes_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
