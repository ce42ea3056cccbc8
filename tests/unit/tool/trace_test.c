/* Tests of tool/trace: what of a caller's word is passed on. */
#include "../base/unit.h"

#include "tool/event.h"

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static void only_what_is_sound_becomes_a_variable(void **state)
{
	static const struct {
		const char *meta, *wanted;
	} rows[] = {
		{"{\"traceparent\":\"" PARENT "\"}", "[\"TRACEPARENT=" PARENT "\"]"},
		{"{\"traceparent\":\"" PARENT
		 "\",\"tracestate\":\"a=b\",\"baggage\":\"k=v w\"}",
		 "[\"TRACEPARENT=" PARENT "\",\"TRACESTATE=a=b\",\"BAGGAGE=k=v w\"]"},
		{"{\"traceparent\":\"" PARENT "\",\"tracestate\":\"a\\nb\",\"baggage\":5}",
		 "[\"TRACEPARENT=" PARENT "\"]"},
		{"{\"traceparent\":\"" PARENT "0\"}", NULL},
		{"{\"traceparent\":\"00-zzf7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"}",
		 NULL},
		/* W3C: what is invalid, and taken for absent. */
		{"{\"traceparent\":\"00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"}",
		 NULL},
		{"{\"traceparent\":\"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"}",
		 NULL},
		{"{\"traceparent\":\"00-00000000000000000000000000000000-b7ad6b7169203331-01\"}",
		 NULL},
		{"{\"traceparent\":\"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01\"}",
		 NULL},
		{"{\"traceparent\":\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-\\u000001\"}",
		 NULL},
		{"{\"traceparent\":[],\"tracestate\":\"a=b\"}", NULL},
		{"{\"tracestate\":\"a=b\"}", NULL},
		{"7", NULL},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		auto_value struct value *list = value_new_array();
		auto_value struct value *meta = NULL;
		struct buf text;

		assert_true(value_parse(str_of(rows[i].meta), 0, &meta, NULL));
		auto_value struct value *trace = event_trace_of(meta);
		assert_int_equal(trace != NULL, rows[i].wanted != NULL);
		if (trace == NULL)
			continue;
		event_trace_add_variables(trace, list);
		buf_init(&text, 4096);
		(void)value_print(list, 0, &text);
		assert_string_equal(text.data, rows[i].wanted);
		buf_fini(&text);
	}
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(only_what_is_sound_becomes_a_variable),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
