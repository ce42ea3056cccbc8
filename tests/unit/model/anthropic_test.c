/* Tests of model/anthropic: the request body, byte by byte, and the words for errors. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/failure.h"
#include "request.h"

#define MARK ",\"cache_control\":{\"type\":\"ephemeral\"}"
/* What is before and behind the messages in a body without tools, system and wishes. */
#define HEAD "{\"model\":\"m\",\"max_tokens\":16000,\"messages\":["
#define TAIL "],\"stream\":true}"

static void check_body(const struct provider_settings *settings,
		       const struct model_request *request, const char *expected)
{
	struct buf body;

	buf_init(&body, BODY_MAX);
	value_free(written(&anthropic_provider, settings, request, &body));
	assert_string_equal(body.data, expected);
	buf_fini(&body);
}

static void check_messages(const struct conversation *conversation, const char *expected)
{
	struct model_request request = {.conversation = conversation, .stop_fd = -1};

	check_body(&plain, &request, expected);
}

static void the_prefix_that_stays_is_marked(void **state)
{
	struct conversation conversation;
	static const char schema[] = "{\"type\":\"object\",\"$defs\":{\"x\":{}}}";
	struct model_tool tools[] = {{"a", "does \"a\"", schema}, {"b", "", NULL}};
	struct model_request request = {
		.conversation = &conversation,
		.tools = tools,
		.tool_count = 2,
		.stop_fd = -1,
	};

	(void)state;
	conversation_init(&conversation);
	conversation_set_system(&conversation, "be \"good\"\n");
	add_user(&conversation, "hi");
	check_body(&plain, &request,
		   "{\"model\":\"m\",\"max_tokens\":16000,\"tools\":["
		   "{\"name\":\"a\",\"description\":\"does \\\"a\\\"\",\"input_schema\":"
		   "{\"type\":\"object\",\"$defs\":{\"x\":{}}}},"
		   "{\"name\":\"b\",\"description\":\"\",\"input_schema\":"
		   "{\"type\":\"object\",\"properties\":{}}" MARK "}],"
		   "\"system\":[{\"type\":\"text\",\"text\":\"be \\\"good\\\"\\n\"" MARK "}],"
		   "\"messages\":[{\"role\":\"user\",\"content\":["
		   "{\"type\":\"text\",\"text\":\"hi\"" MARK "}]}" TAIL);
	conversation_fini(&conversation);
}

static void an_empty_conversation_is_still_json(void **state)
{
	struct conversation conversation;

	(void)state;
	conversation_init(&conversation);
	check_messages(&conversation, HEAD TAIL);
	conversation_set_system(&conversation, " \n");
	add_user(&conversation, " ");
	(void)conversation_add(&conversation, SPEAKER_MODEL);
	check_messages(&conversation, HEAD TAIL);
	conversation_fini(&conversation);
}

/* The end of the request before is marked too, so that it is found in the cache. */
static void the_newest_two_messages_of_the_user_are_marked(void **state)
{
	struct conversation conversation;

	(void)state;
	conversation_init(&conversation);
	for (int i = 0; i < 3; i++) {
		add_user(&conversation, "u");
		if (i < 2)
			(void)message_add_text(conversation_add(&conversation, SPEAKER_MODEL),
					       "m");
	}
	check_messages(
		&conversation, HEAD
		"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"u\"}]},"
		"{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"m\"}]},"
		"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"u\"" MARK "}]},"
		"{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"m\"}]},"
		"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"u\"" MARK
		"}]}" TAIL);
	conversation_fini(&conversation);
}

static void results_of_one_turn_come_first_in_one_message(void **state)
{
	struct conversation conversation;
	struct message *message;

	(void)state;
	conversation_init(&conversation);
	message = conversation_add(&conversation, SPEAKER_MODEL);
	(void)message_add_text(message, "I look.");
	(void)message_add_call(message, "t1", "glob", "{\"pattern\": \"*\"}");
	(void)message_add_call(message, "t2", "bash", "");
	message = conversation_add(&conversation, SPEAKER_USER);
	(void)message_add_text(message, "Two steps are left.");
	(void)message_add_result(message, "t1", "glob", "a.c", false);
	(void)message_add_result(message, "t2", "bash", " \n", true);
	add_user(&conversation, "Go on.");
	check_messages(&conversation, HEAD
		       "{\"role\":\"assistant\",\"content\":["
		       "{\"type\":\"text\",\"text\":\"I look.\"},"
		       "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"glob\",\"input\":"
		       "{\"pattern\": \"*\"}},"
		       "{\"type\":\"tool_use\",\"id\":\"t2\",\"name\":\"bash\",\"input\":{}}]},"
		       "{\"role\":\"user\",\"content\":["
		       "{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"a.c\"},"
		       "{\"type\":\"tool_result\",\"tool_use_id\":\"t2\",\"content\":"
		       "\"(The tool gave no text.)\",\"is_error\":true},"
		       "{\"type\":\"text\",\"text\":\"Two steps are left.\"},"
		       "{\"type\":\"text\",\"text\":\"Go on.\"" MARK "}]}" TAIL);
	conversation_fini(&conversation);
}

static void input_is_an_object_whatever_was_written(void **state)
{
	static const struct {
		const char *written, *sent;
	} cases[] = {
		{"{\"a\": 1}", "{\"a\": 1}"},
		{"null", "{}"},
		{"{\"a\": oops", "{\"invalid_arguments\":\"{\\\"a\\\": oops\"}"},
		{"[1]", "{\"invalid_arguments\":\"[1]\"}"},
		{"bad \xff", "{\"invalid_arguments\":\"bad \xef\xbf\xbd\"}"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		struct conversation conversation;
		struct buf expected;

		conversation_init(&conversation);
		(void)message_add_call(conversation_add(&conversation, SPEAKER_MODEL),
				       "t", "f", cases[i].written);
		buf_init(&expected, BODY_MAX);
		(void)buf_addf(&expected,
			       HEAD
			       "{\"role\":\"assistant\",\"content\":[{\"type\":"
			       "\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":%s}]}" TAIL,
			       cases[i].sent);
		check_messages(&conversation, expected.data);
		buf_fini(&expected);
		conversation_fini(&conversation);
	}
}

static void blocks_go_back_unchanged_and_in_place(void **state)
{
	struct conversation conversation;
	struct message *message;

	(void)state;
	conversation_init(&conversation);
	message = conversation_add(&conversation, SPEAKER_MODEL);
	(void)message_add_thinking(
		message, "Hm.",
		json("{\"anthropic_block\":{\"type\":\"thinking\",\"signature\":\"S+/=\"}}"));
	(void)message_add_text(message, "a");
	(void)message_add_thinking(
		message, "",
		json("{\"anthropic_block\":{\"type\":\"redacted_thinking\",\"data\":\"D==\"}}"));
	(void)message_add_thinking(
		message, "",
		json("{\"anthropic_block\":{\"type\":\"server_tool_use\",\"id\":\"s\","
		     "\"name\":\"web_search\",\"input\":{\"query\":\"x\"}}}"));
	message_add_call(message, "t", "f", "{}")->extra =
		json("{\"anthropic_block\":{\"caller\":{\"type\":\"direct\"}}}");
	check_messages(&conversation, HEAD
		       "{\"role\":\"assistant\",\"content\":["
		       "{\"type\":\"thinking\",\"thinking\":\"Hm.\",\"signature\":\"S+/=\"},"
		       "{\"type\":\"text\",\"text\":\"a\"},"
		       "{\"type\":\"redacted_thinking\",\"data\":\"D==\"},"
		       "{\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web_search\","
		       "\"input\":{\"query\":\"x\"}},"
		       "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{},"
		       "\"caller\":{\"type\":\"direct\"}}]}" TAIL);
	conversation_fini(&conversation);
}

static void thinking_of_other_services_stays_at_home(void **state)
{
	struct conversation conversation;
	struct message *message;

	(void)state;
	conversation_init(&conversation);
	message = conversation_add(&conversation, SPEAKER_MODEL);
	(void)message_add_thinking(message, "Hm.", NULL);
	(void)message_add_thinking(message, "Hm.",
				   json("{\"field\":\"reasoning_content\"}"));
	message = conversation_add(&conversation, SPEAKER_MODEL);
	(void)message_add_thinking(message, "Hm.", json("{\"anthropic_block\":3}"));
	message_add_text(message, "a")->extra = json("{\"response_item\":{\"id\":\"x\"}}");
	/* Their ids too may be none here. */
	(void)message_add_call(message, "functions.f:0", "a tool", "{}");
	(void)message_add_result(conversation_add(&conversation, SPEAKER_USER),
				 "functions.f:0", "a tool", "b", false);
	check_messages(&conversation, HEAD
		       "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
		       "{\"type\":\"tool_use\",\"id\":\"functions_f_0\",\"name\":\"a_tool\","
		       "\"input\":{}}]},"
		       "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
		       "\"tool_use_id\":\"functions_f_0\",\"content\":\"b\"" MARK
		       "}]}" TAIL);
	conversation_fini(&conversation);
}

/* What a pause left, and what came after it, are one message of the model. */
static void a_pause_goes_back_as_it_is(void **state)
{
	struct conversation conversation;
	struct message *message;

	(void)state;
	conversation_init(&conversation);
	add_user(&conversation, "u");
	message = conversation_add(&conversation, SPEAKER_MODEL);
	(void)message_add_text(message, "a ");
	message = conversation_add(&conversation, SPEAKER_MODEL);
	(void)message_add_text(message, "b");
	check_messages(&conversation, HEAD
		       "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"u\"" MARK
		       "}]},"
		       "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"a \"},"
		       "{\"type\":\"text\",\"text\":\"b\"}]}" TAIL);
	conversation_fini(&conversation);
}

static void each_generation_is_told_in_its_own_words(void **state)
{
#define ENABLED(budget) \
	",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":" budget "}"
#define ADAPTIVE(effort)                                                                       \
	",\"thinking\":{\"type\":\"adaptive\",\"display\":\"summarized\"},\"output_config\":{" \
	"\"effort\":\"" effort "\"}"
	static const struct {
		const char *model;
		double temperature;
		uint64_t budget, output;
		const char *limits;
	} cases[] = {
		{"qwen3", 0.5, 0, 0, "16000,\"temperature\":0.5"},
		{"qwen3", 0.5, 4000, 0, "16000" ENABLED("4000")},
		{"qwen3", -1, 16000, 0, "24000" ENABLED("16000")},
		{"qwen3", -1, 10, 0, "16000" ENABLED("1024")},
		{"qwen3", -1, 16000, 20000, "20000" ENABLED("16000")},
		{"qwen3", -1, 16000, 8000, "8000" ENABLED("4000")},
		{"qwen3", 0.5, 16000, 1500, "1500,\"temperature\":0.5"},
		{"claude-3-haiku-20240307", 0.5, 0, 0, "4096,\"temperature\":0.5"},
		{"claude-3-5-sonnet-20241022", -1, 0, 0, "8192"},
		{"claude-3-5-haiku-latest", 0.5, 16000, 0, "8192,\"temperature\":0.5"},
		{"claude-3-7-sonnet-20250219", -1, 16000, 0, "32000" ENABLED("16000")},
		{"claude-sonnet-4-20250514", 0, 0, 0, "32000,\"temperature\":0.0"},
		{"claude-opus-4-6", 0.5, 16000, 0, "32000" ENABLED("16000")},
		{"claude-opus-4-7", 0.5, 16000, 0, "32000" ADAPTIVE("high")},
		{"claude-opus-4-7", 0.5, 0, 0, "32000"},
		{"anthropic/claude-opus-4.8", -1, 8192, 0, "32000" ADAPTIVE("medium")},
		{"claude-sonnet-5@20260601", -1, 2048, 64000, "32000" ADAPTIVE("low")},
		{"claude-opus-4-6", -1, 40000, 128000, "48000" ENABLED("40000")},
		{"claude-opus-4-6", -1, 40000, 44000, "44000" ENABLED("40000")},
		{"claude-next", 0.5, 16000, 0, "32000" ADAPTIVE("high")},
		{"claude-", 0.5, 0, 0, "32000"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		const struct provider_settings settings = {
			.model = cases[i].model,
			.temperature = cases[i].temperature,
			.thinking_budget = cases[i].budget,
			.max_output = cases[i].output,
		};
		struct conversation conversation;
		struct model_request request = {.conversation = &conversation,
						.stop_fd = -1};
		struct buf expected;

		conversation_init(&conversation);
		buf_init(&expected, BODY_MAX);
		(void)buf_addf(&expected,
			       "{\"model\":\"%s\",\"max_tokens\":%s,\"messages\":[" TAIL,
			       cases[i].model, cases[i].limits);
		check_body(&settings, &request, expected.data);
		buf_fini(&expected);
		conversation_fini(&conversation);
	}
}

static void a_body_over_its_ceiling_is_refused(void **state)
{
	struct conversation conversation;
	struct model_request request = {.conversation = &conversation, .stop_fd = -1};
	struct err err = {0};

	(void)state;
	conversation_init(&conversation);
	add_user(&conversation, "twenty bytes of text");
	(void)message_add_call(conversation_add(&conversation, SPEAKER_MODEL), "t", "f",
			       "{\"a\": 1}");
	for (size_t max = 0; max < 300; max++) {
		struct buf body;

		buf_init(&body, max);
		if (!anthropic_provider.request(&plain, &request, &body, &err))
			assert_int_equal(err.code, E2BIG);
		else
			assert_true(max >= 240);
		buf_fini(&body);
	}
	conversation_fini(&conversation);
}

static void an_error_names_its_request(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 1000);
	assert_true(anthropic_provider.error(
		STR("{\"type\":\"error\",\"error\":{\"type\":\"authentication_error\","
		    "\"message\":\"invalid x-api-key\"},\"request_id\":\"req_1\"}"),
		&out));
	assert_string_equal(out.data,
			    "invalid x-api-key (authentication_error), request req_1");
	buf_fini(&out);
}

/* As an event in the middle, with status 200: there is no other word on what it is. */
static void each_type_of_error_has_its_kind(void **state)
{
	static const struct {
		const char *type;
		int code;
		bool may_pass;
	} cases[] = {
		{"invalid_request_error", EINVAL, false},
		{"authentication_error", EACCES, false},
		{"billing_error", EINVAL, false},
		{"permission_error", EACCES, false},
		{"not_found_error", EINVAL, false},
		{"request_too_large", E2BIG, false},
		{"rate_limit_error", EBUSY, true},
		{"timeout_error", EAGAIN, true},
		{"api_error", EAGAIN, true},
		{"overloaded_error", EAGAIN, true},
		{"conflict_error", EAGAIN, true},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		struct answer *answer = answer_new(NULL);
		struct err err = {0};
		char event[200];
		bool end = false;

		(void)snprintf(event, sizeof(event),
			       "{\"type\":\"error\",\"error\":{\"type\":\"%s\","
			       "\"message\":\"No.\"},\"request_id\":\"req_1\"}",
			       cases[i].type);
		assert_false(anthropic_provider.event(answer, STR("error"), str_of(event),
						      &end, &err));
		assert_int_equal(err.code, cases[i].code);
		assert_int_equal(failure_may_pass(err.code), cases[i].may_pass);
		assert_non_null(strstr(err.text, "request req_1"));
		answer_free(answer);
	}
}

static void pictures_stand_in_their_result(void **state)
{
	(void)state;
	check_pictures(
		&anthropic_provider, "messages",
		"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"look\","
		"\"cache_control\":{\"type\":\"ephemeral\"}}]},{\"role\":\"assistant\","
		"\"content\":[{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"read_file"
		"\",\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_re"
		"sult\",\"tool_use_id\":\"c1\",\"content\":[{\"type\":\"text\",\"text\""
		":\"a.png: PNG\"},{\"type\":\"image\",\"source\":{\"type\":\"base64\",\""
		"media_type\":\"image/png\",\"data\":\"iVBO\"}},{\"type\":\"image\",\"s"
		"ource\":{\"type\":\"base64\",\"media_type\":\"image/jpeg\",\"data\":\""
		"/w==\"}}]},{\"type\":\"text\",\"text\":\"and?\"},{\"type\":\"image\","
		"\"source\":{\"type\":\"base64\",\"media_type\":\"image/gif\",\"data\":"
		"\"R0lG\"},\"cache_control\":{\"type\":\"ephemeral\"}}]}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pictures_stand_in_their_result),
		cmocka_unit_test(the_prefix_that_stays_is_marked),
		cmocka_unit_test(an_empty_conversation_is_still_json),
		cmocka_unit_test(the_newest_two_messages_of_the_user_are_marked),
		cmocka_unit_test(results_of_one_turn_come_first_in_one_message),
		cmocka_unit_test(input_is_an_object_whatever_was_written),
		cmocka_unit_test(blocks_go_back_unchanged_and_in_place),
		cmocka_unit_test(thinking_of_other_services_stays_at_home),
		cmocka_unit_test(a_pause_goes_back_as_it_is),
		cmocka_unit_test(each_generation_is_told_in_its_own_words),
		cmocka_unit_test(a_body_over_its_ceiling_is_refused),
		cmocka_unit_test(an_error_names_its_request),
		cmocka_unit_test(each_type_of_error_has_its_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
