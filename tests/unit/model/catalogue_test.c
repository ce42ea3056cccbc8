/* Tests of model/catalogue, and of models/catalogue.json itself. */
#include "../base/unit.h"

#include <math.h>
#include <string.h>

#include "front/embedded/embedded.h"
#include "model/catalogue.h"
#include "model/model.h"

static const char small[] =
	"// a comment\n"
	"{\"gpt-5\": {\"provider\": \"openai\", \"context\": 400000, \"price_input\": 1,"
	" \"price_output\": 10, \"price_cached\": 0.1, \"price_cache_write\": 2, \"long_prompt\": 1000,"
	" \"long_input\": 2, \"long_output\": 20, \"tools\": true},"
	" \"gpt-5*\": {\"context\": 7},"
	" \"vendor/exact\": {\"context\": 9},"
	" \"gpt-5-mini\": {\"context\": 300000, \"thinking\": false}}";

static struct value *json(const char *text)
{
	struct value *value = NULL;
	struct err err = {0};

	if (text && !value_parse(str_of(text), 0, &value, &err))
		fail_msg("%s", err.text);
	return value;
}

static struct catalogue *opened(const char *shipped, const char *additions)
{
	auto_value struct value *own = json(additions);
	struct catalogue *catalogue = NULL;
	struct err err = {0};

	if (!catalogue_open(str_of(shipped), own, &catalogue, &err))
		fail_msg("%s", err.text);
	return catalogue;
}

static void the_most_exact_entry_counts(void **state)
{
	static const struct {
		const char *name;
		uint64_t context;
	} cases[] = {
		{"gpt-5", 400000},
		{"gpt-5-2025-08-07", 400000},
		{"gpt-5-20250807", 400000},
		{"gpt-5@20250807", 400000},
		{"gpt-5-latest", 400000},
		{"openai/gpt-5", 400000},
		{"a/b/gpt-5-mini", 300000},
		{"gpt-5-mini", 300000},
		{"gpt-5-mini-2025-08-07", 300000},
		{"gpt-5-2025-08", 7},
		{"gpt-5-2025-08-07-x", 7},
		{"gpt-5.1", 7},
		{"vendor/exact", 9},
		{"exact", 0},
		{"gpt-4", 0},
		{"", 0},
		{NULL, 0},
	};
	struct catalogue *catalogue = opened(small, NULL);

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		struct catalogue_model model =
			catalogue_find(catalogue, cases[i].name, true);

		if (model.context != cases[i].context)
			fail_msg("%s: %llu", cases[i].name,
				 (unsigned long long)model.context);
	}
	catalogue_close(catalogue);
}

static void what_is_not_said_is_not_known(void **state)
{
	struct catalogue *catalogue = opened(small, NULL);
	struct catalogue_model mini = catalogue_find(catalogue, "gpt-5-mini", true);
	struct catalogue_model none = catalogue_find(NULL, "gpt-5", true);
	struct model_usage usage = {.input = 1, .output = 1};
	double dollars = 42;

	(void)state;
	assert_int_equal(mini.tools, CATALOGUE_NOT_SAID);
	assert_int_equal(mini.thinking, CATALOGUE_NO);
	assert_null(mini.provider);
	assert_true(mini.prices.input < 0);
	assert_false(catalogue_cost(&mini, &usage, &dollars));
	assert_true(dollars == 42);
	assert_int_equal(none.context, 0);
	assert_true(none.prices.output < 0);
	catalogue_close(catalogue);
}

static void the_persons_entry_beats_ours_key_by_key(void **state)
{
	struct catalogue *catalogue =
		opened(small,
		       "{\"gpt-5\": {\"context\": 1000, \"price_input\": 3},"
		       " \"mine*\": {\"context\": 5}, \"mine-1\": {\"context\": 6}}");
	struct catalogue_model model = catalogue_find(catalogue, "gpt-5-2025-08-07", true);

	(void)state;
	assert_int_equal(model.context, 1000);
	assert_true(model.prices.input == 3);
	assert_true(model.prices.output == 10);
	assert_string_equal(model.provider, "openai");
	assert_int_equal(catalogue_find(catalogue, "mine-1", true).context, 6);
	assert_int_equal(catalogue_find(catalogue, "mine-2", true).context, 5);
	catalogue_close(catalogue);
}

static void shipped_prices_hold_at_home_only(void **state)
{
	struct catalogue *catalogue = opened(small, "{\"gpt-5\": {\"price_output\": 4}}");
	struct catalogue_model away = catalogue_find(catalogue, "gpt-5", false);

	(void)state;
	assert_int_equal(away.context, 400000);
	assert_true(away.prices.input < 0);
	assert_true(away.prices.output == 4);
	assert_int_equal(away.long_prompt, 0);
	catalogue_close(catalogue);
}

static void costs_are_counted_per_request(void **state)
{
	static const struct {
		struct model_usage usage;
		double dollars;
	} cases[] = {
		{{.input = 1000, .output = 100}, 0.001 + 0.001},
		{{.input = 1000, .output = 0, .cached = 1000}, 0.0001},
		{{.input = 1000, .cached = 100, .cache_writes = 400},
		 0.0005 + 0.00001 + 0.0008},
		{{.input = 1000, .cached = 900, .cache_writes = 400}, 0.00009 + 0.0002},
		/* more cached than sent is the service's mistake */
		{{.input = 10, .output = 0, .cached = 1000}, 0.000001},
		/* a long one costs more for all of it; what was cached costs as input */
		{{.input = 1001, .output = 100, .cached = 1}, 0.002002 + 0.002},
	};
	struct catalogue *catalogue = opened(small, NULL);
	struct catalogue_model model = catalogue_find(catalogue, "gpt-5", true);

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		double dollars = -1;

		assert_true(catalogue_cost(&model, &cases[i].usage, &dollars));
		if (fabs(dollars - cases[i].dollars) > 1e-12)
			fail_msg("%zu: %.12f", i, dollars);
	}
	catalogue_close(catalogue);
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *additions, *says;
	} cases[] = {
		{"{\"x\": {\"contxt\": 1}}", "did you mean \"context\"?"},
		{"{\"x\": {\"context\": 0}}",
		 "models: x: \"context\" must be a whole number"},
		{"{\"x\": {\"context\": \"1\"}}", "must be a whole number above 0"},
		{"{\"x\": {\"price_input\": -1}}", "must be a number of dollars"},
		{"{\"x\": {\"tools\": 1}}", "must be true or false"},
		{"{\"x\": {\"source\": 1}}", "must be text"},
		{"{\"x\": 1}", "must be an object"},
		{"{\"\": {}}", "a name has 1 to 256 bytes"},
		{"{\"[a\": {}}", "models: [a"},
		{"[]", "must be an object of models"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		auto_value struct value *additions = json(cases[i].additions);
		struct catalogue *catalogue = NULL;
		struct err err = {0};

		assert_false(catalogue_open(str_of(small), additions, &catalogue, &err));
		assert_null(catalogue);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s", err.text);
	}
}

static void check_shipped(void *context, const char *name)
{
	struct catalogue_model model = catalogue_find(context, name, true);

	/* A price without the other is none, and a source is what makes it one of ours. */
	if (!model.source || !model.provider || model.context == 0 ||
	    model.max_output == 0 || model.max_output > model.context ||
	    (model.prices.input < 0) != (model.prices.output < 0) ||
	    (model.long_prompt > 0) != (model.long_prices.input >= 0) ||
	    model.tools == CATALOGUE_NOT_SAID || model.thinking == CATALOGUE_NOT_SAID ||
	    model.sight == CATALOGUE_NOT_SAID)
		fail_msg("%s is not complete", name);
	if (strncmp(model.source, "https://", 8) != 0)
		fail_msg("%s: %s", name, model.source);
}

static void the_shipped_catalogue_is_sound(void **state)
{
	struct catalogue *catalogue = opened(embedded_files[0].data, NULL);

	(void)state;
	assert_string_equal(embedded_files[0].name, "models/catalogue.json");
	catalogue_each(catalogue, check_shipped, catalogue);
	assert_int_equal(catalogue_find(catalogue, "claude-haiku-4-5-20251001", true).context,
			 200000);
	catalogue_close(catalogue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_most_exact_entry_counts),
		cmocka_unit_test(what_is_not_said_is_not_known),
		cmocka_unit_test(the_persons_entry_beats_ours_key_by_key),
		cmocka_unit_test(shipped_prices_hold_at_home_only),
		cmocka_unit_test(costs_are_counted_per_request),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(the_shipped_catalogue_is_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
