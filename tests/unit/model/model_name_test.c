/* Tests of model/model_name. */
#include "../base/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/http.h"
#include "model/model.h"
#include "model/provider.h"

/* A session that goes on asks what its record names. */
static void check_record(const struct model_name *name)
{
	auto_free char *shown = memory_copy_str(name->shown);
	struct model_name again;

	assert_true(model_name_parse(shown, &again, NULL));
	assert_ptr_equal(again.provider, name->provider);
	assert_true(str_equal(again.rest, name->rest));
}

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
		{"openai-chat:gpt-x", "openai-chat", "gpt-x", "openai-chat:gpt-x"},
		{"openai-chat:qwen3:8b", "openai-chat", "qwen3:8b", "openai-chat:qwen3:8b"},
		{"openai:gpt-x", "openai", "gpt-x", "openai:gpt-x"},
		{"qwen3:8b", "openai-chat", "qwen3:8b", "qwen3:8b"},
		{"anthropic:claude-x", "anthropic", "claude-x", "anthropic:claude-x"},
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
		check_record(&parsed);
	}
}

static void slips_in_the_provider_are_told(void **state)
{
	static const struct {
		const char *name, *says;
	} cases[] = {
		{"openai_chat:x", "did you mean \"openai-chat\"?"},
		{"repaly:x", "did you mean \"replay\"?"},
		{"llamacpp:x", "\"llamacpp\" is no provider"},
		{"anthropic", "anthropic:NAME"},
		{"vllm:qwen3", "openai-chat:NAME"},
		{"openai-chat:", "needs a model's name"},
		{"openai-chat", "needs a model's name"},
		{"openai", "needs a model's name"},
		{"opneai:x", "did you mean \"openai\"?"},
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

		if (!http_url_make(cases[i].base, openai_chat_provider.base_url,
				   openai_chat_provider.path, &url, &host, &err))
			fail_msg("%s: %s", cases[i].base, err.text);
		assert_string_equal(url, cases[i].url);
		assert_string_equal(host, cases[i].host);
		free(url);
		free(host);
	}
}

static void a_version_that_url_and_path_share_stands_once(void **state)
{
	static const struct provider messages = {
		.name = "messages",
		.base_url = "https://messages.example",
		.path = "/v1/messages",
	};
	static const struct {
		const char *base, *url;
	} cases[] = {
		{NULL, "https://messages.example/v1/messages"},
		{"http://host", "http://host/v1/messages"},
		{"http://host/v1/", "http://host/v1/messages"},
		{"http://host/api/v1", "http://host/api/v1/messages"},
		{"http://host/v12", "http://host/v12/v1/messages"},
		{"http://host/v1/messages", "http://host/v1/messages"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		char *url = NULL, *host = NULL;
		struct err err = {0};

		if (!http_url_make(cases[i].base, messages.base_url, messages.path, &url,
				   &host, &err))
			fail_msg("%s: %s", cases[i].base, err.text);
		assert_string_equal(url, cases[i].url);
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

		assert_false(http_url_make(cases[i].base, openai_chat_provider.base_url,
					   openai_chat_provider.path, &url, &host, &err));
		if (!strstr(err.text, cases[i].says) || strstr(err.text, "key="))
			fail_msg("%s: %s", cases[i].base, err.text);
		assert_null(url);
	}
}

static void this_machine_is_known_by_its_name_alone(void **state)
{
	static const char *const here[] = {
		"http://127.0.0.1:8080/v1", "http://127.1.2.3", "https://localhost/x",
		"http://localhost:1",       "http://[::1]:80/", "http://[::1]",
	};
	static const char *const away[] = {
		"http://127.example.org",
		"http://localhost.example.org",
		"http://10.0.0.1",
		"http://[::1]x",
		"http://example.org/127.0.0.1",
		"",
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(here); i++)
		if (!http_is_here(here[i]))
			fail_msg("%s", here[i]);
	for (size_t i = 0; i < UNIT_COUNT(away); i++)
		if (http_is_here(away[i]))
			fail_msg("%s", away[i]);
}

static void an_origin_has_no_path(void **state)
{
	char *origin = NULL;
	struct err err = {0};

	(void)state;
	assert_true(http_url_origin(" http://h:1/v1/x/ ", &origin, &err));
	assert_string_equal(origin, "http://h:1");
	free(origin);
	assert_false(http_url_origin("http://u@h", &origin, &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_lead_to_their_provider),
		cmocka_unit_test(slips_in_the_provider_are_told),
		cmocka_unit_test(urls_end_in_the_path_of_the_api),
		cmocka_unit_test(a_version_that_url_and_path_share_stands_once),
		cmocka_unit_test(urls_that_are_none_or_hold_keys_are_refused),
		cmocka_unit_test(this_machine_is_known_by_its_name_alone),
		cmocka_unit_test(an_origin_has_no_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
