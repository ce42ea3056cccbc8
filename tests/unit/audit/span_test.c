/* Tests of audit/span: the JSON of OTLP. */
#include "../base/unit.h"

#include <string.h>

#include "audit/span.h"
#include "base/buf.h"

static const char parent_text[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

static void a_traceparent_is_read_strictly(void **state)
{
	static const char *const wrong[] = {
		"",
		"00",
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
		"00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
	};
	struct span_place place = {0}, made;
	bool sampled;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(wrong); i++) {
		assert_false(span_place_read(wrong[i], &place, &sampled));
		assert_true(sampled);
	}
	assert_false(span_place_read(NULL, &place, &sampled));
	assert_true(span_place_read(parent_text, &place, &sampled));
	assert_string_equal(place.trace, "4bf92f3577b34da6a3ce929d0e0e4736");
	assert_string_equal(place.id, "00f067aa0ba902b7");
	made = span_place_new(&place);
	assert_string_equal(made.trace, place.trace);
	assert_string_not_equal(made.id, place.id);
	made = span_place_new(NULL);
	assert_string_not_equal(made.trace, place.trace);
	assert_int_equal(strlen(made.trace), SPAN_TRACE);
	/* The last bit says whether the trace is recorded. */
	assert_false(span_place_read("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
				     &place, &sampled));
	assert_false(sampled);
}

static void a_request_has_the_form_of_otlp(void **state)
{
	auto_value struct value *attributes = value_new_object(), *whole = NULL;
	struct span span = {.name = "execute_tool bash",
			    .kind = SPAN_INTERNAL,
			    .began_ns = 1795368145488000000,
			    .ended_ns = 1795368145489000000,
			    .attributes = attributes,
			    .failure = "denied"};
	struct buf text, resource, request;
	bool sampled;

	(void)state;
	buf_init(&text, SPAN_JSON_MAX);
	buf_init(&resource, SPAN_JSON_MAX);
	buf_init(&request, 4 * SPAN_JSON_MAX);
	assert_true(span_place_read(parent_text, &span.place, &sampled));
	(void)memcpy(span.parent, "b7ad6b7169203331", SPAN_ID);
	value_set_text(attributes, "gen_ai.tool.name", "bash");
	value_set_integer(attributes, "glovebox.exit_code", 1);
	value_set_real(attributes, "glovebox.cpu_s", 0.5);
	value_set_boolean(attributes, "x", true);
	assert_true(span_print(&span, &text));
	assert_string_equal(
		text.data,
		"{\"traceId\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"spanId\":"
		"\"00f067aa0ba902b7\",\"parentSpanId\":\"b7ad6b7169203331\",\"name\":"
		"\"execute_tool bash\",\"kind\":1,\"startTimeUnixNano\":"
		"\"1795368145488000000\",\"endTimeUnixNano\":\"1795368145489000000\","
		"\"attributes\":[{\"key\":\"gen_ai.tool.name\",\"value\":{\"stringValue\":"
		"\"bash\"}},{\"key\":\"glovebox.exit_code\",\"value\":{\"intValue\":\"1\"}},"
		"{\"key\":\"glovebox.cpu_s\",\"value\":{\"doubleValue\":0.5}},{\"key\":\"x\","
		"\"value\":{\"boolValue\":true}}],\"status\":{\"code\":2,\"message\":"
		"\"denied\"}}");
	assert_true(span_print_resource(NULL, "a=b%2Cc, d = e ,no,=x,bad key=1", &resource));
	assert_string_equal(resource.data,
			    "{\"attributes\":[{\"key\":\"a\",\"value\":{\"stringValue\":"
			    "\"b,c\"}},{\"key\":\"d\",\"value\":{\"stringValue\":\"e\"}},"
			    "{\"key\":\"service.name\",\"value\":{\"stringValue\":"
			    "\"glovebox\"}}]}");
	char *spans[] = {text.data, text.data};

	assert_true(span_print_request(buf_str(&resource), "1.2", spans, 2, &request));
	assert_true(value_parse(buf_str(&request), 0, &whole, NULL));
	assert_int_equal(value_count(value_at_pointer(whole,
						      "/resourceSpans/0/scopeSpans/0/spans")),
			 2);
	buf_fini(&text);
	buf_fini(&resource);
	buf_fini(&request);
}

static void a_service_name_goes_before_the_pairs(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, SPAN_JSON_MAX);
	assert_true(span_print_resource("mine", "service.name=other", &out));
	assert_non_null(strstr(out.data, "\"mine\""));
	assert_null(strstr(out.data, "other"));
	buf_clear(&out);
	assert_true(span_print_resource(NULL, "service.name=other", &out));
	assert_non_null(strstr(out.data, "other"));
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_traceparent_is_read_strictly),
		cmocka_unit_test(a_request_has_the_form_of_otlp),
		cmocka_unit_test(a_service_name_goes_before_the_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
