/* Tests of front/ask/address: what is an address, and where a login comes back to. */
#include "../base/unit.h"

#include "policy/address.h"

#include <stdio.h>
#include <string.h>

static void addresses_are_read(void **state)
{
	static const struct {
		const char *text, *host;
		uint16_t port, back;
	} rows[] = {
		{"https://a.example.org", "a.example.org", 443, 0},
		{"HTTP://A.Example.ORG/x", "a.example.org", 80, 0},
		{"https://a.org:8443/x?y#z", "a.org", 8443, 0},
		{"https://a.org?x=@", "a.org", 443, 0},
		{"https://a.org#@b.org/", "a.org", 443, 0},
		{"https://xn--bcher-kva.example", "xn--bcher-kva.example", 443, 0},
		{"http://192.168.1.1/", "192.168.1.1", 80, 0},
		{"http://[::1]:8080/", "::1", 8080, 0},
		{"https://a.org/?redirect_uri=http://localhost:1455/cb", "a.org", 443, 1455},
		{"https://a.org/?x=1&redirect_uri=http%3A%2F%2F127.0.0.1%3a54321%2Fcb&y=2",
		 "a.org", 443, 54321},
		{"https://a.org/?redirect_uri=http://LOCALHOST:1455", "a.org", 443, 1455},
		{"https://a.org/?redirect_uri=http://localhost:1455?x", "a.org", 443, 1455},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct address address;
		struct err err = {0};

		if (!address_parse(str_of(rows[i].text), &address, &err))
			fail_msg("%s: %s", rows[i].text, err.text);
		assert_string_equal(address.text, rows[i].text);
		assert_string_equal(address.host.text, rows[i].host);
		assert_int_equal(address.port, rows[i].port);
		assert_int_equal(address.back, rows[i].back);
	}
}

/* None of these opens a port. */
static void a_login_comes_back_to_one_port_of_this_machine(void **state)
{
	static const char *const queries[] = {
		"redirect_uri=https://localhost:1455/",
		"redirect_uri=http://localhost/",
		"redirect_uri=http://localhost:80/",
		"redirect_uri=http://localhost:1023/",
		"redirect_uri=http://localhost:01455/",
		"redirect_uri=http://localhost:65536/",
		"redirect_uri=http://localhost:1455x/",
		"redirect_uri=http://localhost:1455@a.org/",
		"redirect_uri=http://localhost:1455%00/",
		"redirect_uri=http://localhost:1455%",
		"redirect_uri=http://localhost:1455%2",
		"redirect_uri=http://localhost:1455%zz",
		"redirect_uri=http://localhost.a.org:1455/",
		"redirect_uri=http://127.0.0.2:1455/",
		"redirect_uri=http://[::1]:1455/",
		"redirect_uri=http://me@localhost:1455/",
		"redirect_uri=http%253A%252F%252Flocalhost%253A1455/",
		"redirect_uri=",
		"redirect_urix=http://localhost:1455/",
		"xredirect_uri=http://localhost:1455/",
		"redirect_uri=http://localhost:1455/&redirect_uri=http://localhost:1456/",
		"redirect_uri=http://localhost:1455/&redirect_uri=http://a.org/",
	};
	char text[ADDRESS_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
		struct address address;

		(void)snprintf(text, sizeof(text), "https://a.org/?%s", queries[i]);
		assert_true(address_parse(str_of(text), &address, NULL));
		if (address.back != 0)
			fail_msg("%s: port %u", queries[i], address.back);
	}
	/* A query is in front of the fragment only. */
	struct address address;
	assert_true(address_parse(STR("https://a.org/#?redirect_uri=http://localhost:1455/"),
				  &address, NULL));
	assert_int_equal(address.back, 0);
}

static void everything_else_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"https",
		"https:",
		"https:/a.org",
		"https:a.org",
		" https://a.org",
		"https://",
		"https:///a.org",
		"https://:443/",
		"https://a.org:/",
		"https://a.org:65536/",
		"https://me@a.org/",
		"https://a.org@b.org/",
		"https://a.org\\@b.org/",
		"https://a.org\\.b.org/",
		"https://a.org/\"",
		"https://a.org/<b>",
		"https://a.org/`id`",
		"https://a.org/{b}",
		"https://a.org/|b",
		"https://a.org/^",
		"https://a.org/ b",
		"https://a.org/\tb",
		"https://a.org/\nb",
		"https://a.org/\rb",
		"https://a.org/\x1b[2J",
		"https://a.org/\x7f",
		"https://a.org/\xc2\x9b",
		"https://\xc3\xbcx.example/",
		"https://a.org%2eb.org/",
		"https://127.1/",
		"https://2130706433/",
		"https://0x7f000001/",
		"https://a_b.org/",
		"javascript:alert(1)",
		"JavaScript://a.org/%0aalert(1)",
		"file:///etc/passwd",
		"data:text/html,x",
		"view-source:https://a.org",
		"ftp://a.org/",
		"-x",
		"--help",
		"/etc/passwd",
		"a.org",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct address address;
		struct err err = {0};

		if (address_parse(str_of(texts[i]), &address, &err))
			fail_msg("taken: %s", texts[i]);
		assert_true(err.text[0] != '\0');
	}
}

static void an_address_has_a_longest(void **state)
{
	static const struct str begins = STR("https://a.org/");
	char text[ADDRESS_MAX + 1];
	struct address address;

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, begins.data, begins.size);
	assert_true(address_parse((struct str){text, ADDRESS_MAX}, &address, NULL));
	assert_int_equal(strlen(address.text), ADDRESS_MAX);
	assert_false(address_parse((struct str){text, ADDRESS_MAX + 1}, &address, NULL));
	assert_false(address_parse((struct str){"https://a.org/\0b", 16}, &address, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_read),
		cmocka_unit_test(a_login_comes_back_to_one_port_of_this_machine),
		cmocka_unit_test(everything_else_is_refused),
		cmocka_unit_test(an_address_has_a_longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
