/* Tests of model/openai_responses: the request body, byte for byte. */
#include <errno.h>
#include <string.h>

#include "request.h"

/* What is written of CONVERSATION between BEFORE and the cache's key is EXPECTED. */
static void check_body(const struct provider_settings *settings,
		       const struct model_request *request, const char *expected)
{
	auto_value struct value *whole = NULL;
	struct buf body;
	size_t key;

	buf_init(&body, BODY_MAX);
	whole = written(&openai_provider, settings, request, &body);
	assert_int_equal(value_str(value_member(whole, "prompt_cache_key")).size, 32);
	assert_true(str_ends(buf_str(&body), STR("\",\"store\":false,\"stream\":true}")));
	key = str_find(buf_str(&body), STR(",\"prompt_cache_key\":\""), 0);
	assert_int_not_equal(key, (size_t)-1);
	buf_truncate(&body, key);
	assert_string_equal(body.data, expected);
	buf_fini(&body);
}

/* The input of CONVERSATION is INPUT, with nothing before and after it but what always is. */
static void check_input(const struct conversation *conversation, const char *input)
{
	struct model_request request = {.conversation = conversation, .stop_fd = -1};
	struct buf expected;

	buf_init(&expected, BODY_MAX);
	(void)buf_addf(&expected,
		       "{\"model\":\"m\",\"input\":%s,"
		       "\"include\":[\"reasoning.encrypted_content\"]",
		       input);
	check_body(&plain, &request, expected.data);
	buf_fini(&expected);
}

#define USER(text)                                             \
	"{\"type\":\"message\",\"role\":\"user\",\"content\":" \
	"[{\"type\":\"input_text\",\"text\":\"" text "\"}]}"
#define MODEL_TEXT(text) \
	"\"content\":[{\"type\":\"output_text\",\"text\":\"" text "\",\"annotations\":[]}]}"
#define MODEL(text) "{\"type\":\"message\",\"role\":\"assistant\"," MODEL_TEXT(text)

static void nothing_is_stored_and_reasoning_comes_sealed(void **state)
{
	struct conversation conversation;

	(void)state;
	conversation_init(&conversation);
	check_input(&conversation, "[]");
	(void)message_add_text(conversation_add(&conversation, SPEAKER_USER),
			       "hi \"you\"\n");
	check_input(&conversation, "[" USER("hi \\\"you\\\"\\n") "]");
	conversation_fini(&conversation);
}

static void the_system_prompt_is_the_instructions(void **state)
{
	struct conversation conversation;
	struct model_request request = {.conversation = &conversation, .stop_fd = -1};

	(void)state;
	conversation_init(&conversation);
	conversation_set_system(&conversation, "Be good.");
	check_body(&plain, &request,
		   "{\"model\":\"m\",\"instructions\":\"Be good.\",\"input\":[],"
		   "\"include\":[\"reasoning.encrypted_content\"]");
	conversation_set_system(&conversation, " \n");
	check_input(&conversation, "[]");
	conversation_fini(&conversation);
}

static void tools_are_functions_that_are_not_strict(void **state)
{
	struct conversation conversation;
	static const char schema[] = "{\"type\":\"object\",\"$defs\":{\"x\":{}}}";
	struct model_tool tools[] = {{"a", "does \"a\"", schema}, {"b", "", NULL}};
	struct model_request request = {.conversation = &conversation,
					.tools = tools,
					.tool_count = 2,
					.stop_fd = -1};

	(void)state;
	conversation_init(&conversation);
	check_body(&plain, &request,
		   "{\"model\":\"m\",\"input\":[],\"tools\":["
		   "{\"type\":\"function\",\"name\":\"a\",\"description\":\"does \\\"a\\\"\","
		   "\"parameters\":{\"type\":\"object\",\"$defs\":{\"x\":{}}},\"strict\":false},"
		   "{\"type\":\"function\",\"name\":\"b\",\"description\":\"\","
		   "\"parameters\":{\"type\":\"object\",\"properties\":{}},\"strict\":false}],"
		   "\"include\":[\"reasoning.encrypted_content\"]");
	conversation_fini(&conversation);
}

static void each_family_of_models_gets_what_it_takes(void **state)
{
#define SEALED       ",\"include\":[\"reasoning.encrypted_content\"]"
#define EFFORT(word) ",\"reasoning\":{\"effort\":\"" word "\",\"summary\":\"auto\"}"
	static const struct {
		const char *model;
		double temperature;
		uint64_t budget, max_output;
		const char *sent;
	} cases[] = {
		{"gpt-5", 0.5, 0, 0, SEALED},
		{"gpt-5", 0.5, 1, 0, SEALED EFFORT("low")},
		{"o3-mini", -1, 2048, 0, SEALED EFFORT("low")},
		{"o3-mini", -1, 2049, 0, SEALED EFFORT("medium")},
		{"codex-mini", -1, 8192, 0, SEALED EFFORT("medium")},
		{"openai/gpt-5.2", 1, 8193, 0, SEALED EFFORT("high")},
		{"gpt-4.1", 0.5, 16000, 0, ",\"temperature\":0.5"},
		{"openai/gpt-4o", -1, 16000, 9, ",\"max_output_tokens\":9"},
		{"gpt-oss-120b", 0.5, 9000, 0, SEALED EFFORT("high") ",\"temperature\":0.5"},
		{"qwen3:8b", 0.5, 0, 64000,
		 SEALED ",\"temperature\":0.5,\"max_output_tokens\":64000"},
	};
	struct conversation conversation;
	struct model_request request = {.conversation = &conversation, .stop_fd = -1};

	(void)state;
	conversation_init(&conversation);
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		struct provider_settings settings = {
			.model = cases[i].model,
			.temperature = cases[i].temperature,
			.thinking_budget = cases[i].budget,
			.max_output = cases[i].max_output,
		};
		struct buf expected;

		buf_init(&expected, BODY_MAX);
		(void)buf_addf(&expected, "{\"model\":\"%s\",\"input\":[]%s",
			       cases[i].model, cases[i].sent);
		check_body(&settings, &request, expected.data);
		buf_fini(&expected);
	}
	conversation_fini(&conversation);
}

static void results_follow_their_calls_before_any_text(void **state)
{
	struct conversation conversation;
	struct message *message;

	(void)state;
	conversation_init(&conversation);
	add_user(&conversation, "look");
	message = conversation_add(&conversation, SPEAKER_MODEL);
	(void)message_add_text(message, "I look.");
	(void)message_add_call(message, "1", "glob", "{\"pattern\":\"*\"}");
	(void)message_add_call(message, "2", "bash", "{oops");
	message = conversation_add(&conversation, SPEAKER_USER);
	(void)message_add_text(message, "Two steps are left.");
	(void)message_add_result(message, "1", "glob", "a.c", false);
	(void)message_add_result(message, "2", "bash", " \n", true);
	(void)message_add_text(message, "Go on.");
	check_input(
		&conversation,
		"[" USER("look") "," MODEL(
			"I look.") ","
				   "{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"glob\","
				   "\"arguments\":\"{\\\"pattern\\\":\\\"*\\\"}\"},"
				   "{\"type\":\"function_call\",\"call_id\":\"2\",\"name\":\"bash\","
				   "\"arguments\":\"{\\\"invalid_arguments\\\":\\\"{oops\\\"}\"},"
				   "{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":\"a.c\"},"
				   "{\"type\":\"function_call_output\",\"call_id\":\"2\","
				   "\"output\":\"(The tool gave no text.)\"},"
				   "{\"type\":\"message\",\"role\":\"user\",\"content\":["
				   "{\"type\":\"input_text\",\"text\":\"Two steps are left.\"},"
				   "{\"type\":\"input_text\",\"text\":\"Go on.\"}]}]");
	conversation_fini(&conversation);
}

#define REASONING                                                 \
	"{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[]," \
	"\"encrypted_content\":\"gA/+\\u0001==\",\"later\":{\"a\":[1,2.5,null]}}"

static void items_go_back_in_place_byte_for_byte(void **state)
{
	struct conversation conversation;
	struct message *message;
	struct part *part;

	(void)state;
	conversation_init(&conversation);
	message = conversation_add(&conversation, SPEAKER_MODEL);
	(void)message_add_thinking(message, "", json("{\"response_item\":" REASONING "}"));
	part = message_add_text(message, "Hm.");
	part->extra = json("{\"response_item\":{\"id\":\"msg_1\",\"type\":\"message\","
			   "\"role\":\"assistant\",\"phase\":\"commentary\"}}");
	(void)message_add_thinking(message, "seen",
				   json("{\"response_item\":" REASONING "}"));
	part = message_add_call(message, "c1", "docs_find", "{}");
	part->extra = json("{\"response_item\":{\"id\":\"fc_1\",\"type\":\"function_call\","
			   "\"name\":\"find\",\"namespace\":\"docs\"}}");
	part = message_add_call(message, "c2", "apply_patch", "{\"input\":\"x\"}");
	part->extra = json("{\"response_item\":{\"id\":\"ct_1\",\"name\":\"apply_patch\","
			   "\"type\":\"custom_tool_call\",\"input\":\"x\"}}");
	message = conversation_add(&conversation, SPEAKER_USER);
	(void)message_add_result(message, "c1", "docs_find", "found", false);
	(void)message_add_result(message, "c2", "apply_patch", "done", false);
	check_input(
		&conversation,
		"[" REASONING ","
		"{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\","
		"\"phase\":\"commentary\"," MODEL_TEXT(
			"Hm.") "," REASONING ","
			       "{\"id\":\"fc_1\",\"type\":\"function_call\",\"name\":\"find\","
			       "\"namespace\":\"docs\",\"call_id\":\"c1\",\"arguments\":\"{}\"},"
			       "{\"id\":\"ct_1\",\"name\":\"apply_patch\",\"type\":\"custom_tool_call\","
			       "\"input\":\"x\",\"call_id\":\"c2\"},"
			       "{\"type\":\"function_call_output\",\"call_id\":\"c1\",\"output\":\"found\"},"
			       "{\"type\":\"custom_tool_call_output\",\"call_id\":\"c2\",\"output\":\"done\"}]");
	conversation_fini(&conversation);
}

static void what_would_be_refused_stays_at_home(void **state)
{
	struct conversation conversation;
	struct message *message;

	(void)state;
	conversation_init(&conversation);
	message = conversation_add(&conversation, SPEAKER_MODEL);
	/* Thoughts of another API, reasoning that says nothing, blanks. */
	(void)message_add_thinking(message, "a", NULL);
	(void)message_add_thinking(message, "b", json("{\"signature\":\"s\"}"));
	(void)message_add_thinking(message, "c",
				   json("{\"response_item\":{\"type\":\"reasoning\","
					"\"id\":\"rs_9\",\"summary\":[]}}"));
	(void)message_add_thinking(message, "d", json("{\"response_item\":7}"));
	(void)message_add_text(message, " \n");
	(void)message_add_text(message, "kept");
	/* Nothing of the answer follows. */
	(void)message_add_thinking(message, "e", json("{\"response_item\":" REASONING "}"));
	add_user(&conversation, "");
	(void)conversation_add(&conversation, SPEAKER_MODEL);
	check_input(&conversation, "[" MODEL("kept") "]");
	conversation_fini(&conversation);
}

static struct value *cache_key(const struct conversation *conversation)
{
	struct model_request request = {.conversation = conversation, .stop_fd = -1};
	auto_value struct value *whole = NULL;
	struct buf body;

	buf_init(&body, BODY_MAX);
	assert_true(openai_provider.request(&plain, &request, &body, NULL));
	assert_true(value_parse(buf_str(&body), 0, &whole, NULL));
	buf_fini(&body);
	return value_ref(value_member(whole, "prompt_cache_key"));
}

static void the_cache_s_key_is_that_of_the_beginning(void **state)
{
	struct conversation conversation;
	auto_value struct value *first = NULL;
	auto_value struct value *later = NULL;
	auto_value struct value *other = NULL;

	(void)state;
	conversation_init(&conversation);
	conversation_set_system(&conversation, "s");
	add_user(&conversation, "a");
	first = cache_key(&conversation);
	(void)message_add_text(conversation_add(&conversation, SPEAKER_MODEL), "b");
	add_user(&conversation, "c");
	later = cache_key(&conversation);
	assert_true(value_equal(first, later));
	conversation_set_system(&conversation, "t");
	other = cache_key(&conversation);
	assert_false(value_equal(first, other));
	conversation_fini(&conversation);
}

static void a_body_over_its_ceiling_is_refused(void **state)
{
	struct conversation conversation;
	struct model_request request = {.conversation = &conversation, .stop_fd = -1};
	struct err err = {0};

	(void)state;
	conversation_init(&conversation);
	(void)message_add_text(conversation_add(&conversation, SPEAKER_USER),
			       "twenty bytes of text");
	for (size_t max = 0; max < 200; max++) {
		struct buf body;

		buf_init(&body, max);
		assert_false(openai_provider.request(&plain, &request, &body, &err));
		assert_int_equal(err.code, E2BIG);
		buf_fini(&body);
	}
	conversation_fini(&conversation);
}

static void pictures_stand_in_their_result(void **state)
{
	(void)state;
	check_pictures(
		&openai_provider, "input",
		"[{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"inpu"
		"t_text\",\"text\":\"look\"}]},{\"type\":\"function_call\",\"call_id\":"
		"\"c1\",\"name\":\"read_file\",\"arguments\":\"{}\"},{\"type\":\"functi"
		"on_call_output\",\"call_id\":\"c1\",\"output\":[{\"type\":\"input_text"
		"\",\"text\":\"a.png: PNG\"},{\"type\":\"input_image\",\"image_url\":\""
		"data:image/png;base64,iVBO\"},{\"type\":\"input_image\",\"image_url\":"
		"\"data:image/jpeg;base64,/w==\"}]},{\"type\":\"message\",\"role\":\"us"
		"er\",\"content\":[{\"type\":\"input_text\",\"text\":\"and?\"},{\"type\":"
		"\"input_image\",\"image_url\":\"data:image/gif;base64,R0lG\"}]}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pictures_stand_in_their_result),
		cmocka_unit_test(nothing_is_stored_and_reasoning_comes_sealed),
		cmocka_unit_test(the_system_prompt_is_the_instructions),
		cmocka_unit_test(tools_are_functions_that_are_not_strict),
		cmocka_unit_test(each_family_of_models_gets_what_it_takes),
		cmocka_unit_test(results_follow_their_calls_before_any_text),
		cmocka_unit_test(items_go_back_in_place_byte_for_byte),
		cmocka_unit_test(what_would_be_refused_stays_at_home),
		cmocka_unit_test(the_cache_s_key_is_that_of_the_beginning),
		cmocka_unit_test(a_body_over_its_ceiling_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
