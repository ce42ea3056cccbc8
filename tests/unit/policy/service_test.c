/* Tests of policy/service: what the key and the lines of tokens may say. */
#include "policy/service/service.h"

#include "policy/service/recorded.h"

#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "policy/config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static struct value *parsed(const char *text)
{
	struct value *value = NULL;

	assert_true(value_parse(str_of(text), 0, &value, NULL));
	return value;
}

/* Does a configuration with SERVICE as its key pass? */
static bool passes(const char *service)
{
	auto_config struct config *config = NULL;
	struct buf text;
	struct err err;
	bool fine;

	buf_init(&text, 4096);
	(void)buf_addf(&text, "{\"service\": %s}", service);
	fine = config_parse(buf_str(&text), "test", &config, &err);
	buf_fini(&text);
	return fine;
}

static void the_defaults_are_those_of_the_manual(void **state)
{
	struct service service;

	(void)state;
	service_read(NULL, &service);
	assert_int_equal(service.cells, SERVICE_PER_SESSION);
	assert_int_equal(service.max_cells, 64);
	assert_int_equal(service.max_cells_per_token, 8);
	assert_int_equal(service.max_calls_per_token, 16);
	assert_true(service.idle_s == 900 && service.life_s == 28800 &&
		    service.drain_s == 30);
	assert_int_equal(service.on_close, SERVICE_KEEPS);
	assert_null(service.tokens);
	service_fini(&service);
}

static void a_template_is_a_path_below_the_root(void **state)
{
	static const char *const sound[] = {"work/{token}/{cell}", "{id}",
					    "a.b/c-{date}_{id}"};
	static const char *const others[] = {"",
					     "/a",
					     "a/",
					     "a//b",
					     "..",
					     "a/../b",
					     ".a/b",
					     "a b/c",
					     "{user}",
					     "{token",
					     "a\\tb",
					     "a/{cell}}",
					     "{token}-{cell}"};
	struct buf text;

	(void)state;
	buf_init(&text, 4096);
	for (size_t i = 0; i < sizeof(sound) / sizeof(sound[0]); i++) {
		buf_clear(&text);
		(void)buf_addf(&text, "{\"workspace\": \"%s\"}", sound[i]);
		assert_true(passes(text.data));
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		buf_clear(&text);
		(void)buf_addf(&text, "{\"workspace\": \"%s\"}", others[i]);
		if (passes(text.data))
			fail_msg("%s", others[i]);
	}
	buf_clear(&text);
	assert_true(service_fill("work/{token}/{cell}-{date}{id}",
				 &(struct service_names){"ann", "main", "0a1b", "2026-11-30"},
				 &text));
	assert_string_equal(text.data, "work/ann/main-2026-11-300a1b");
	buf_fini(&text);
}

static void only_a_folder_of_its_own_is_removed(void **state)
{
	(void)state;
	assert_false(passes("{\"on_close\": \"delete\"}"));
	assert_false(
		passes("{\"on_close\": \"archive\", \"workspace\": \"{cell}/{token}\"}"));
	assert_true(
		passes("{\"on_close\": \"delete\", \"workspace\": \"{token}/a-{cell}\"}"));
	assert_true(passes("{\"on_close\": \"keep\", \"workspace\": \"{token}\"}"));
}

static bool trusts(const struct service *service, const char *address)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	struct sockaddr_in four = {.sin_family = AF_INET};

	if (inet_pton(AF_INET, address, &four.sin_addr) == 1)
		return service_trusts(service, (const struct sockaddr *)&four);
	assert_int_equal(inet_pton(AF_INET6, address, &six.sin6_addr), 1);
	return service_trusts(service, (const struct sockaddr *)&six);
}

static void proxies_are_found_by_their_first_bits(void **state)
{
	auto_value struct value *value = parsed(
		"{\"trusted_proxies\": [\"127.0.0.1\", \"10.128.0.0/9\", \"2001:db8::/33\"]}");
	static const char *const ours[] = {"127.0.0.1", "10.128.0.1", "10.255.255.255",
					   "2001:db8:7fff::1", "::ffff:127.0.0.1"};
	static const char *const others[] = {"127.0.0.2", "10.127.0.1",
					     "2001:db8:8000::1", "::1"};
	struct service service;

	(void)state;
	service_read(value, &service);
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		assert_true(trusts(&service, ours[i]));
		assert_true(service_trusts_text(&service, str_of(ours[i])));
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_false(trusts(&service, others[i]));
		assert_false(service_trusts_text(&service, str_of(others[i])));
	}
	assert_false(service_trusts_text(&service, STR("127.0.0.1:80")));
	assert_false(service_trusts(&service, NULL));
	service_fini(&service);
	assert_false(passes("{\"trusted_proxies\": [\"10.0.0.0/33\"]}"));
	assert_false(passes("{\"trusted_proxies\": [\"10.0.0.0/\"]}"));
	assert_false(passes("{\"trusted_proxies\": [\"host.example\"]}"));
}

static void a_token_expires_at_the_end_of_its_day(void **state)
{
	static const struct {
		const char *said;
		int64_t ms;
	} rows[] = {{"1970-01-01", 86400000},
		    {"2024-02-29", INT64_C(1709251200000)},
		    {"2024-02-29T12:00:00Z", INT64_C(1709208000000)}};
	static const char *const others[] = {"2023-02-29",
					     "2024-2-1",
					     "2024-13-01",
					     "tomorrow",
					     "2024-02-29T12:00:00",
					     "2024-02-29 12:00:00Z"};
	struct buf text;
	struct err err;

	(void)state;
	buf_init(&text, 4096);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct service_token token;

		buf_clear(&text);
		(void)buf_addf(&text,
			       "{\"name\": \"a\", \"sha256\": \"" HASH_A
			       "\", \"expires\": \"%s\"}",
			       rows[i].said);
		auto_value struct value *value = parsed(text.data);
		assert_true(config_check_rows(service_token_rows, value, &err));
		service_token_read(value, &token);
		assert_true(token.expires_ms == rows[i].ms);
		service_token_fini(&token);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		buf_clear(&text);
		(void)buf_addf(&text,
			       "{\"name\": \"a\", \"sha256\": \"" HASH_A
			       "\", \"expires\": \"%s\"}",
			       others[i]);
		auto_value struct value *value = parsed(text.data);
		if (config_check_rows(service_token_rows, value, &err))
			fail_msg("%s", others[i]);
	}
	buf_fini(&text);
}

static void an_audit_may_be_the_word_for_its_folder(void **state)
{
	static const char *const others[] = {
		"{\"audit\": \"relative\"}",
		"{\"audit\": \"\"}",
		"{\"audit\": [\"/a\"]}",
		"{\"audit_key\": \"/k\"}",
		"{\"audit\": {\"folder\": \"/a\"}, \"audit_key\": \"/k\"}",
		"{\"audit\": \"/a\", \"audit_key\": \"k\"}",
		"{\"otlp\": \"ftp://a\"}",
	};
	auto_value struct value *words = parsed(
		"{\"audit\": \"/a\", \"audit_key\": \"/k\", \"otlp\": \"http://c\"}");
	auto_value struct value *objects =
		parsed("{\"audit\": {\"folder\": \"/a\", \"key_file\": \"/k\", \"sync\": "
		       "\"each\"}, \"otlp\": {\"content\": true}}");
	struct recorded recorded;
	struct service service;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(passes(others[i]));
	assert_true(passes(
		"{\"audit\": \"/a\", \"audit_key\": \"/k\", \"otlp\": \"http://c\"}"));
	recorded_read(words, &recorded);
	assert_string_equal(recorded.folder, "/a");
	assert_string_equal(recorded.key_file, "/k");
	assert_string_equal(recorded.endpoint, "http://c");
	assert_true(recorded.spans && !recorded.each && !recorded.content);
	recorded_fini(&recorded);
	recorded_read(objects, &recorded);
	assert_string_equal(recorded.folder, "/a");
	assert_string_equal(recorded.key_file, "/k");
	assert_null(recorded.endpoint);
	assert_true(recorded.spans && recorded.each && recorded.content);
	recorded_fini(&recorded);
	/* None of them makes a service of the server. */
	service_read(words, &service);
	assert_false(service.given);
	service_fini(&service);
}

static void names_are_plain(void **state)
{
	static const char *const others[] = {"", "a b", "a/b", "..", "a.b", "\xc3\xa4"};

	(void)state;
	assert_true(service_is_name(STR("Ann-2_x")));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(service_is_name(str_of(others[i])));
	assert_true(service_is_name((struct str){HASH_A, 64}));
	assert_false(service_is_name((struct str){HASH_A "a", 65}));
	assert_false(service_is_name((struct str){"a\0b", 3}));
}

static void other_rights_are_other_tokens(void **state)
{
	auto_value struct value *agent =
		parsed("{\"name\": \"a\", \"sha256\": \"" HASH_A "\", \"agent\": \"x\"}");
	auto_value struct value *policy = parsed("{\"name\": \"a\", \"sha256\": \"" HASH_A
						 "\", \"policy\": {\"write\": [\".\"]}}");
	struct service_token a, b;

	(void)state;
	service_token_read(agent, &a);
	service_token_read(policy, &b);
	assert_true(service_token_has_rights(&a, &a) && service_token_has_rights(&b, &b));
	assert_false(service_token_has_rights(&a, &b));
	assert_false(service_token_has_rights(&b, &a));
	service_token_fini(&a);
	service_token_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_defaults_are_those_of_the_manual),
		cmocka_unit_test(a_template_is_a_path_below_the_root),
		cmocka_unit_test(only_a_folder_of_its_own_is_removed),
		cmocka_unit_test(proxies_are_found_by_their_first_bits),
		cmocka_unit_test(a_token_expires_at_the_end_of_its_day),
		cmocka_unit_test(an_audit_may_be_the_word_for_its_folder),
		cmocka_unit_test(names_are_plain),
		cmocka_unit_test(other_rights_are_other_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
