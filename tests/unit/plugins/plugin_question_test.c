/* Tests of plugins/run: what a script asks, as the runtime is asked. */
#include "../base/unit.h"

#include <string.h>

#include "base/buf.h"
#include "plugins/run.h"

/* LINE is read as KIND with REQUEST; KIND NULL: it is refused with a sentence that holds REQUEST. */
static void is_read(const char *line, const char *kind, const char *request)
{
	struct plugin_question question = {0};
	auto_value struct value *value = NULL;
	struct err err = {0};
	struct buf text;

	assert_true(value_parse(str_of(line), 0, &value, &err));
	assert_int_equal(plugin_question_read(value, &question, &err), kind != NULL);
	if (kind == NULL) {
		assert_non_null(strstr(err.text, request));
		assert_null(question.request);
		return;
	}
	assert_string_equal(question.kind, kind);
	buf_init(&text, 1 << 16);
	assert_true(value_print(question.request, 0, &text));
	assert_string_equal(text.data, request);
	assert_true(value_equal(question.id, value_member(value, "id")));
	buf_fini(&text);
	value_free(question.request);
	value_free(question.id);
}

static void a_person_is_asked_by_a_form_or_sent_to_a_page(void **state)
{
	(void)state;
	is_read("{\"type\":\"question\",\"id\":\"a\",\"message\":\"M\",\"schema\":{},\"x\":1}",
		"form", "{\"message\":\"M\",\"schema\":{},\"key\":\"a\"}");
	is_read("{\"type\":\"question\",\"id\":7,\"message\":\"M\",\"url\":\"http://a\","
		"\"required\":true}",
		"url", "{\"message\":\"M\",\"url\":\"http://a\",\"required\":true}");
	is_read("{\"type\":\"question\",\"id\":1}", NULL, "needs \"message\"");
}

static void a_model_gets_the_request_and_nothing_of_the_line(void **state)
{
	(void)state;
	is_read("{\"type\":\"sampling\",\"id\":\"m\",\"request\":{\"maxTokens\":5}}",
		"sampling", "{\"maxTokens\":5,\"key\":\"m\"}");
	is_read("{\"type\":\"sampling\",\"request\":3}", NULL,
		"needs the object \"request\"");
	is_read("{\"type\":\"roots\",\"id\":\"r\"}", "roots", "{\"key\":\"r\"}");
}

static void several_keep_their_names(void **state)
{
	(void)state;
	is_read("{\"type\":\"questions\",\"id\":1,\"requests\":{\"who\":{\"type\":\"question\","
		"\"message\":\"M\"},\"where\":{\"type\":\"roots\"}}}",
		"several",
		"{\"requests\":{\"who\":{\"message\":\"M\",\"kind\":\"form\"},"
		"\"where\":{\"kind\":\"roots\"}}}");
}

static void several_are_at_least_one_and_none_inside_another(void **state)
{
	(void)state;
	is_read("{\"type\":\"questions\",\"requests\":{}}", NULL, "1 to 8");
	is_read("{\"type\":\"questions\",\"requests\":[]}", NULL, "1 to 8");
	is_read("{\"type\":\"questions\",\"requests\":{\"a\":{\"type\":\"roots\"},\"b\":3}}",
		NULL, "\"b\"");
	is_read("{\"type\":\"questions\",\"requests\":{\"a\":{\"type\":\"questions\","
		"\"requests\":{}}}}",
		NULL, "must be question, sampling or roots");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_person_is_asked_by_a_form_or_sent_to_a_page),
		cmocka_unit_test(a_model_gets_the_request_and_nothing_of_the_line),
		cmocka_unit_test(several_keep_their_names),
		cmocka_unit_test(several_are_at_least_one_and_none_inside_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
