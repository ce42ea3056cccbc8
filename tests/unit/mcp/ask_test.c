/* Tests of mcp/ask: what is asked of a client, and what counts as an answer. */
#include "../base/unit.h"

#include <string.h>

#include "mcp/server/mcp.h"

static struct value *parse(const char *text)
{
	struct value *value = NULL;
	struct err err;

	if (!value_parse(str_of(text), 0, &value, &err))
		fail_msg("%s", err.text);
	return value;
}

/* The one request that KIND and TEXT make; the caller's. */
static struct value *request_of(const char *kind, const char *text)
{
	auto_value struct value *given = parse(text);
	bool one;
	auto_value struct value *requests = mcp_ask_requests(kind, given, 3, &one);

	assert_true(one);
	assert_int_equal(value_count(requests), 1);
	return value_ref(value_at(value_first(requests)));
}

static void printed(const struct value *value, const char *wanted)
{
	struct buf text;

	buf_init(&text, 4096);
	assert_true(value_print(value, 0, &text));
	assert_string_equal(text.data, wanted);
	buf_fini(&text);
}

static const char form[] =
	"{\"message\":\"Who?\",\"schema\":{\"type\":\"object\","
	"\"properties\":{\"n\":{\"type\":\"string\"}},\"required\":[\"n\"]}}";

static void a_form_is_an_elicitation(void **state)
{
	auto_value struct value *request = request_of("form", form);
	auto_value struct value *message = mcp_ask_message(request, true, "q3.0");

	(void)state;
	printed(message,
		"{\"method\":\"elicitation/create\",\"params\":{\"message\":\"Who?\","
		"\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
		"\"string\"}},\"required\":[\"n\"]}}}");
}

static void only_older_clients_get_an_id_with_a_url(void **state)
{
	auto_value struct value *request =
		request_of("url", "{\"message\":\"Go\",\"url\":\"https://x.example\"}");
	auto_value struct value *older = mcp_ask_message(request, true, "q3.0");
	auto_value struct value *newer = mcp_ask_message(request, false, NULL);

	(void)state;
	assert_string_equal(value_text(value_member(value_member(older, "params"),
						    "elicitationId")),
			    "q3.0");
	assert_null(value_member(value_member(newer, "params"), "elicitationId"));
	assert_string_equal(value_text(value_member(value_member(newer, "params"), "mode")),
			    "url");
}

static void several_are_asked_by_their_keys(void **state)
{
	auto_value struct value *given = parse(
		"{\"requests\":{\"a\":{\"message\":\"x\"},\"b\":{\"kind\":\"roots\"},"
		"\"c\":{\"kind\":\"sampling\",\"maxTokens\":5,\"required\":true}}}");
	bool one;
	auto_value struct value *requests = mcp_ask_requests("several", given, 1, &one);
	struct mcp_client client = {.roots = true};

	(void)state;
	assert_false(one);
	assert_int_equal(value_count(requests), 3);
	assert_false(mcp_ask_is_possible(value_member(requests, "a"), &client));
	assert_true(mcp_ask_is_possible(value_member(requests, "b"), &client));
	assert_false(mcp_ask_is_possible(value_member(requests, "c"), &client));
	assert_string_equal(mcp_ask_needs(value_member(requests, "c")), "sampling");
	assert_null(mcp_ask_needs(value_member(requests, "a")));
}

static void answered(const struct value *request, const char *said, const char *wanted)
{
	auto_value struct value *given = parse(said);
	auto_value struct value *answer = mcp_ask_read_answer(request, given);

	if (wanted == NULL)
		assert_null(answer);
	else
		printed(answer, wanted);
}

static void an_answer_fits_its_question(void **state)
{
	auto_value struct value *elicitation = request_of("form", form);
	auto_value struct value *roots = request_of("roots", "{}");
	auto_value struct value *sampling = request_of("sampling", "{\"maxTokens\":1}");

	(void)state;
	answered(elicitation, "{\"action\":\"accept\",\"content\":{\"n\":\"x\"}}",
		 "{\"action\":\"accept\",\"content\":{\"n\":\"x\"}}");
	answered(elicitation, "{\"action\":\"decline\"}", "{\"action\":\"decline\"}");
	answered(elicitation, "{\"action\":\"accept\",\"content\":{\"n\":5}}", NULL);
	answered(elicitation, "{\"action\":\"accept\"}", NULL);
	answered(elicitation, "{\"action\":\"maybe\"}", NULL);
	answered(elicitation, "12345", NULL);
	answered(roots, "{\"roots\":[]}",
		 "{\"action\":\"accept\",\"content\":{\"roots\":[]}}");
	answered(roots, "{}", NULL);
	answered(sampling, "{\"content\":{\"type\":\"text\"}}",
		 "{\"action\":\"accept\",\"content\":{\"content\":{\"type\":\"text\"}}}");
	answered(sampling, "{\"role\":\"user\"}", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_form_is_an_elicitation),
		cmocka_unit_test(only_older_clients_get_an_id_with_a_url),
		cmocka_unit_test(several_are_asked_by_their_keys),
		cmocka_unit_test(an_answer_fits_its_question),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
