/* Tests of mcp/bridge/oauth: documents and answers of servers of tokens. */
#include "../base/unit.h"

#include <string.h>

#include "mcp/bridge/oauth.h"

static void a_resource_is_the_server_or_a_part_of_its_path(void **state)
{
	static const struct {
		const char *resource;
		bool fits;
	} rows[] = {
		{"https://a.org/mcp/v1", true},    {"https://a.org/mcp/v1/", true},
		{"https://a.org/mcp", true},       {"https://a.org", true},
		{"https://a.org/", true},          {"https://a.org/mc", false},
		{"https://a.org/mcp/v2", false},   {"https://b.org/mcp/v1", false},
		{"http://a.org/mcp/v1", false},    {"https://a.org:444/mcp/v1", false},
		{"https://a.org.evil/mcp", false}, {NULL, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(oauth_resource_fits(rows[i].resource,
						     "https://a.org/mcp/v1"),
				 rows[i].fits);
}

static void documents_are_looked_for_where_they_may_be(void **state)
{
	static const struct {
		const char *url, *name;
		size_t index;
		const char *place;
	} rows[] = {
		{"https://a.org/x/", "oauth-protected-resource", 0,
		 "https://a.org/.well-known/oauth-protected-resource/x"},
		{"https://a.org/x", "oauth-protected-resource", 1,
		 "https://a.org/.well-known/oauth-protected-resource"},
		{"https://a.org/x", "openid-configuration", 1,
		 "https://a.org/x/.well-known/openid-configuration"},
		{"https://a.org", "openid-configuration", 0,
		 "https://a.org/.well-known/openid-configuration"},
		{"https://a.org?x", "openid-configuration", 1, NULL},
	};
	struct buf place;

	(void)state;
	buf_init(&place, 256);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const bool found =
			oauth_place(rows[i].url, rows[i].name, rows[i].index, &place);

		assert_int_equal(found, rows[i].place != NULL);
		if (found)
			assert_string_equal(place.data, rows[i].place);
	}
	buf_fini(&place);
}

/* The example of RFC 7636, appendix B. */
static void a_challenge_is_that_of_the_standard(void **state)
{
	struct buf challenge;

	(void)state;
	buf_init(&challenge, 64);
	oauth_challenge_add("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", &challenge);
	assert_string_equal(challenge.data, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
	buf_fini(&challenge);
}

static void an_answer_must_be_that_of_our_login(void **state)
{
	static const struct {
		const char *query, *why; /* NULL: it is taken */
	} rows[] = {
		{"code=a%2Bb+c&state=s&iss=https%3A%2F%2Fa.org", NULL},
		{"code=x&state=s", "does not name"},
		{"code=x&state=t&iss=https://a.org", "its state is not ours"},
		{"code=x&state=s&state=s&iss=https://a.org", "its state is not ours"},
		{"code=x&iss=https://a.org", "its state is not ours"},
		{"code=x&state=s&iss=https://a.org/", "another authorization server"},
		{"code=x&state=s&iss=https://a.org&iss=https://a.org", "does not name"},
		{"code=&state=s&iss=https://a.org", "has no code"},
		{"code=x&code=y&state=s&iss=https://a.org", "has no code"},
		{"code=%0&state=s&iss=https://a.org", "has no code"},
		{"error=access_denied&error_description=no%0Away&state=s&iss=https://a.org",
		 "refused: access_denied, no"},
		{"error=access_denied", "its state is not ours"},
		{"", "its state is not ours"},
	};
	const struct oauth_wanted wanted = {.state = "s",
					    .issuer = "https://a.org",
					    .names_itself = true};
	struct buf code;
	struct err err;

	(void)state;
	buf_init(&code, 64);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const bool taken =
			oauth_answer_read(str_of(rows[i].query), &wanted, &code, &err);

		assert_int_equal(taken, rows[i].why == NULL);
		if (taken)
			assert_string_equal(code.data, "a+b c");
		else if (!strstr(err.text, rows[i].why))
			fail_msg("%s: %s", rows[i].query, err.text);
	}
	buf_fini(&code);
}

static void addresses_of_a_server_are_https_or_here(void **state)
{
	static const struct {
		const char *document;
		bool fits;
	} rows[] = {
		{"{\"issuer\":\"https://a.org\",\"token_endpoint\":\"https://b.org/t\"}",
		 true},
		{"{\"issuer\":\"https://a.org\",\"token_endpoint\":\"http://b.org/t\"}",
		 false},
		{"{\"issuer\":\"https://a.org\",\"token_endpoint\":\"http://[::1]:8/t\"}",
		 true},
		{"{\"issuer\":\"https://a.org\",\"token_endpoint\":\"file:///t\"}", false},
		{"{\"issuer\":\"https://a.org\"}", false},
		{"{\"issuer\":\"https://a.org/\",\"token_endpoint\":\"https://b.org/t\"}",
		 false},
		{"{\"issuer\":\"https://a.org\",\"token_endpoint\":\"https://b.org/t\","
		 "\"authorization_endpoint\":\"https://a.org/a\"}",
		 false},
		{"{\"issuer\":\"https://a.org\",\"token_endpoint\":\"https://b.org/t\","
		 "\"authorization_endpoint\":\"https://a.org/a\","
		 "\"code_challenge_methods_supported\":[\"S256\"]}",
		 true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_value struct value *document = NULL;
		struct oauth_server server;
		struct err err;

		assert_true(value_parse(str_of(rows[i].document), 0, &document, NULL));
		assert_int_equal(oauth_server_read(document, "https://a.org", &server, &err),
				 rows[i].fits);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_resource_is_the_server_or_a_part_of_its_path),
		cmocka_unit_test(documents_are_looked_for_where_they_may_be),
		cmocka_unit_test(a_challenge_is_that_of_the_standard),
		cmocka_unit_test(an_answer_must_be_that_of_our_login),
		cmocka_unit_test(addresses_of_a_server_are_https_or_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
