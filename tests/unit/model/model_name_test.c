/* Tests of model/model_name. */
#include "../base/unit.h"

#include <stdlib.h>
#include <string.h>

#include "model/model_name.h"
#include "model/provider.h"

static void names_lead_to_their_provider(void **state)
{
	static const struct {
		const char *name, *provider, *rest, *shown;
	} cases[] = {
		{NULL, NULL, "", "replay"},
		{"", NULL, "", "replay"},
		{"replay", NULL, "", "replay"},
		{"replay:a:b.json", NULL, "a:b.json", "replay:a:b.json"},
		{"gpt-x", "openai-chat", "gpt-x", "gpt-x"},
		{"openai-chat:gpt-x", "openai-chat", "gpt-x", "gpt-x"},
		{"openai-chat:qwen3:8b", "openai-chat", "qwen3:8b", "qwen3:8b"},
		{"qwen3:8b", "openai-chat", "qwen3:8b", "qwen3:8b"},
		{"vendor/model:free", "openai-chat", "vendor/model:free",
		 "vendor/model:free"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		struct model_name parsed;
		struct err err = {0};

		if (!model_name_parse(cases[i].name, &parsed, &err))
			fail_msg("%s", err.text);
		assert_int_equal(parsed.provider != NULL, cases[i].provider != NULL);
		if (parsed.provider)
			assert_string_equal(parsed.provider->name, cases[i].provider);
		assert_true(str_is(parsed.rest, cases[i].rest));
		assert_true(str_is(parsed.shown, cases[i].shown));
	}
}

static void slips_in_the_provider_are_told(void **state)
{
	static const struct {
		const char *name, *says;
	} cases[] = {
		{"openai_chat:x", "did you mean \"openai-chat\"?"},
		{"repaly:x", "did you mean \"replay\"?"},
		{"anthropic:x", "\"anthropic\" is no provider"},
		{"ollama:qwen3", "openai-chat:NAME"},
		{"openai-chat:", "needs a model's name"},
		{"openai-chat", "needs a model's name"},
		{"replay:", "needs a file"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		struct model_name parsed;
		struct err err = {0};

		assert_false(model_name_parse(cases[i].name, &parsed, &err));
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].name, err.text);
	}
}

static void urls_end_in_the_path_of_the_api(void **state)
{
	static const struct {
		const char *base, *url, *host;
	} cases[] = {
		{NULL, "https://api.openai.com/v1/chat/completions", "api.openai.com"},
		{"", "https://api.openai.com/v1/chat/completions", "api.openai.com"},
		{"http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/chat/completions",
		 "127.0.0.1:8080"},
		{" http://[::1]:80/v1// ", "http://[::1]:80/v1/chat/completions", "[::1]:80"},
		{"https://x/y/chat/completions", "https://x/y/chat/completions", "x"},
		{"http://host", "http://host/chat/completions", "host"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		char *url = NULL, *host = NULL;
		struct err err = {0};

		if (!model_name_url(&openai_chat_provider, cases[i].base, &url, &host, &err))
			fail_msg("%s: %s", cases[i].base, err.text);
		assert_string_equal(url, cases[i].url);
		assert_string_equal(host, cases[i].host);
		free(url);
		free(host);
	}
}

static void urls_that_are_none_or_hold_keys_are_refused(void **state)
{
	static const struct {
		const char *base, *says;
	} cases[] = {
		{"localhost:8080", "begins with http://"},
		{"ftp://x", "begins with http://"},
		{"http://", "names no host"},
		{"http:///v1", "names no host"},
		{"http://:80/v1", "names no host"},
		{"http://key@host/v1", "names a user"},
		{"http://host/v1?key=1", "a query or a fragment"},
		{"http://host/v1#x", "a query or a fragment"},
		{"http://ho st/v1", "at byte 10"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		char *url = NULL, *host = NULL;
		struct err err = {0};

		assert_false(model_name_url(&openai_chat_provider, cases[i].base, &url,
					    &host, &err));
		if (!strstr(err.text, cases[i].says) || strstr(err.text, "key="))
			fail_msg("%s: %s", cases[i].base, err.text);
		assert_null(url);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_lead_to_their_provider),
		cmocka_unit_test(slips_in_the_provider_are_told),
		cmocka_unit_test(urls_end_in_the_path_of_the_api),
		cmocka_unit_test(urls_that_are_none_or_hold_keys_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
