/* Tests of policy/network: what is a host, what is an entry, and which of them lets through. */
#include "../base/unit.h"

#include <stdio.h>
#include <string.h>

#include "policy/network.h"

static void entries_are_read(void **state)
{
	static const struct {
		const char *text, *host;
		unsigned port;
		enum network_kind kind;
		bool suffix, carried;
	} rows[] = {
		{"example.org", "example.org", 443, NETWORK_NAME, false, false},
		{"Example.ORG:8443", "example.org", 8443, NETWORK_NAME, false, false},
		{"*.example.net:80", "example.net", 80, NETWORK_NAME, true, false},
		{"xn--bcher-kva.example", "xn--bcher-kva.example", 443, NETWORK_NAME,
		 false, false},
		{"1and1.example", "1and1.example", 443, NETWORK_NAME, false, false},
		{"db", "db", 443, NETWORK_NAME, false, false},
		{"10.0.0.1:8080", "10.0.0.1", 8080, NETWORK_IPV4, false, false},
		{"[::1]:80", "::1", 80, NETWORK_IPV6, false, false},
		{"[2001:DB8:0::1]", "2001:db8::1", 443, NETWORK_IPV6, false, false},
		{"tcp://db.example:5432", "db.example", 5432, NETWORK_NAME, false, true},
		{"tcp://localhost:6379", "localhost", 6379, NETWORK_NAME, false, true},
		{"tcp://[fd00::5]:22", "fd00::5", 22, NETWORK_IPV6, false, true},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct network_entry entry;
		struct err err = {0};

		if (!network_parse_entry(str_of(rows[i].text), &entry, &err))
			fail_msg("%s: %s", rows[i].text, err.text);
		assert_string_equal(entry.host.text, rows[i].host);
		assert_int_equal(entry.port, rows[i].port);
		assert_int_equal(entry.host.kind, rows[i].kind);
		assert_int_equal(entry.suffix, rows[i].suffix);
		assert_int_equal(entry.carried, rows[i].carried);
	}
}

static void what_is_no_entry_is_refused_with_its_rule(void **state)
{
	static const struct {
		const char *text, *rule;
	} rows[] = {
		{"", "empty"},
		{"*", "all of them"},
		{"*.", "empty"},
		{"*.*.example.org", "only in front"},
		{"a*.example.org", "only in front"},
		{"*.10.0.0.1", "not an address"},
		{"https://example.org", "not a URL"},
		{"tcp://example.org", "port is missing"},
		{"tcp://*.example.org:1", "not to a suffix"},
		{"tcp://example.org:1/x", "no path"},
		{"example.org/", "no path"},
		{"example.org.", "empty label"},
		{".example.org", "empty label"},
		{"a..b", "empty label"},
		{"-a.example", "begins"},
		{"a-.example", "ends"},
		{"a_b.example", "letters"},
		{"a b.example", "letters"},
		{"a\tb.example", "letters"},
		{"a\nb", "letters"},
		{"b\xc3\xbc"
		 "cher.example",
		 "xn--"},
		{"user@example.org", "user name"},
		{"user:pass@example.org:443", "user name"},
		{"example.org:", "port"},
		{"example.org:0", "port"},
		{"example.org:080", "port"},
		{"example.org:+80", "port"},
		{"example.org:65536", "port"},
		{"example.org:443:443", "brackets"},
		{"::1", "brackets"},
		{"2001:db8::1", "brackets"},
		{"[::1", "bracket is not closed"},
		{"[::1]x", "not closed"},
		{"[]", "in brackets"},
		{"[fe80::1%eth0]", "zone"},
		{"[127.0.0.1]", "IPv6"},
		{"2130706433", "four decimal"},
		{"0x7f000001", "four decimal"},
		{"0x7f.0.0.1", "four decimal"},
		{"127.0.0.0x1", "four decimal"},
		{"0177.0.0.1", "four decimal"},
		{"127.1", "four decimal"},
		{"127.0.0.1.", "empty label"},
		{"1.2.3.256", "four decimal"},
		{"1.2.3.4.5", "four decimal"},
		{"example.1", "four decimal"},
		{"localhost:8080", "tcp://localhost"},
		{"LocalHost", "tcp://localhost"},
	};
	char long_label[70] = {0}, long_name[300] = {0};
	struct network_entry entry;
	struct err err;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		if (network_parse_entry(str_of(rows[i].text), &entry, &err))
			fail_msg("taken: %s", rows[i].text);
		if (strstr(err.text, rows[i].rule) == NULL)
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].text, err.text,
				 rows[i].rule);
	}
	assert_false(network_parse_entry((struct str){"a\0b", 3}, &entry, &err));
	memset(long_label, 'a', 64);
	assert_false(network_parse_entry(str_of(long_label), &entry, &err));
	long_label[63] = '\0';
	assert_true(network_parse_entry(str_of(long_label), &entry, &err));
	for (size_t i = 0; i < 254; i++)
		long_name[i] = i % 2 ? '.' : 'a';
	long_name[253] = 'a';
	assert_false(network_parse_entry(str_of(long_name), &entry, &err));
	long_name[253] = '\0';
	assert_true(network_parse_entry(str_of(long_name), &entry, &err));
}

static void a_list_lets_through_what_it_names(void **state)
{
	static const char *const texts[] = {"example.org", "*.example.net:8443",
					    "10.0.0.1:80", "[::1]:80",
					    "tcp://db.example:5432"};
	static const struct {
		const char *asked;
		bool passes;
	} rows[] = {
		{"example.org:443", true},      {"EXAMPLE.org:443", true},
		{"example.org:80", false},      {"www.example.org:443", false},
		{"badexample.org:443", false},  {"a.example.net:8443", true},
		{"a.b.example.net:8443", true}, {"example.net:8443", false},
		{"xexample.net:8443", false},   {"a.example.net:443", false},
		{"10.0.0.1:80", true},          {"10.0.0.2:80", false},
		{"[0:0::1]:80", true},          {"[::ffff:10.0.0.1]:80", false},
		{"db.example:5432", false},
	};
	struct network_entry entries[UNIT_COUNT(texts)];
	struct err err;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(texts); i++)
		assert_true(network_parse_entry(str_of(texts[i]), &entries[i], &err));
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct network_host host;
		uint16_t port;

		if (!network_parse_authority(str_of(rows[i].asked), 0, &host, &port, &err))
			fail_msg("%s: %s", rows[i].asked, err.text);
		bool passes = network_find(entries, UNIT_COUNT(texts), &host, port) != NULL;
		if (passes != rows[i].passes)
			fail_msg("%s passes: %d", rows[i].asked, passes);
	}
}

static void one_port_of_the_loopback_is_one_host(void **state)
{
	struct network_entry entries[3];
	struct err err;

	(void)state;
	assert_true(network_parse_entry(STR("tcp://a.example:5432"), &entries[0], &err));
	assert_true(network_parse_entry(STR("b.example:5432"), &entries[1], &err));
	assert_true(network_parse_entry(STR("tcp://a.example:5432"), &entries[2], &err));
	assert_true(network_check_ports(entries, 3, &err));
	assert_true(network_parse_entry(STR("tcp://b.example:5432"), &entries[2], &err));
	assert_false(network_check_ports(entries, 3, &err));
	assert_non_null(strstr(err.text, "tcp://a.example:5432 and tcp://b.example:5432"));
}

static void published_ports_are_read(void **state)
{
	static const struct {
		const char *text;
		enum network_listens at;
		const char *address;
		unsigned host_port, port;
	} rows[] = {
		{"3000", LISTENS_LOOPBACK, "127.0.0.1", 3000, 3000},
		{"8080:3000", LISTENS_LOOPBACK, "127.0.0.1", 8080, 3000},
		{"0:3000", LISTENS_LOOPBACK, "127.0.0.1", 0, 3000},
		{"127.0.0.1:8080:3000", LISTENS_LOOPBACK, "127.0.0.1", 8080, 3000},
		{"own:3000", LISTENS_OWN, "", 3000, 3000},
		{"own:0:3000", LISTENS_OWN, "", 0, 3000},
		{"0.0.0.0:3000", LISTENS_ADDRESS, "0.0.0.0", 3000, 3000},
		{"127.0.0.2:3000", LISTENS_ADDRESS, "127.0.0.2", 3000, 3000},
		{"[::1]:8080:3000", LISTENS_ADDRESS, "::1", 8080, 3000},
	};
	static const char *const wrong[] = {
		"",          "0",           "3000:0",  "03000",    "65536",
		"1:2:3",     "own:",        "own",     "own:a",    "a:3",
		"127.0.0.1", "127.0.0.1:",  "127.1:3", "a.b:3",    "[::1]",
		"[::1:3",    "[::1]3000",   "+3",      "3000/tcp", "own:127.0.0.1:3",
		"3 ",        "localhost:3",
	};
	struct network_publish read;
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		if (!network_parse_publish(str_of(rows[i].text), &read, &err))
			fail_msg("%s: %s", rows[i].text, err.text);
		assert_int_equal(read.at, rows[i].at);
		assert_string_equal(read.address.text, rows[i].address);
		assert_int_equal(read.host_port, rows[i].host_port);
		assert_int_equal(read.port, rows[i].port);
	}
	for (size_t i = 0; i < UNIT_COUNT(wrong); i++) {
		if (network_parse_publish(str_of(wrong[i]), &read, &err))
			fail_msg("\"%s\" is taken", wrong[i]);
	}
}

static void one_port_outside_is_published_once(void **state)
{
	static const struct {
		const char *a, *b;
		bool fits;
	} rows[] = {
		{"3000", "3000", false},           {"3000", "3000:80", false},
		{"3000", "127.0.0.1:3000", false}, {"3000", "8080:3000", true},
		{"0:3000", "0:3000", true},        {"3000", "own:3000", true},
		{"own:80:3000", "own:80", false},  {"3000", "[::1]:3000", true},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct network_publish entries[2];
		struct err err = {0};

		assert_true(network_parse_publish(str_of(rows[i].a), &entries[0], &err));
		assert_true(network_parse_publish(str_of(rows[i].b), &entries[1], &err));
		if (network_check_publish(entries, 2, &err) != rows[i].fits)
			fail_msg("%s and %s: %d", rows[i].a, rows[i].b, rows[i].fits);
	}
}

static void a_project_has_one_address_of_its_own(void **state)
{
	struct network_host a, again, b;

	(void)state;
	network_own_address("/home/anna/shop", &a);
	network_own_address("/home/anna/shop", &again);
	network_own_address("/home/anna/shop2", &b);
	assert_true(network_same_host(&a, &again));
	assert_false(network_same_host(&a, &b));
	for (int i = 0; i < 5000; i++) {
		char folder[32];

		(void)snprintf(folder, sizeof(folder), "/srv/shop%d", i);
		network_own_address(folder, &a);
		assert_int_equal(a.kind, NETWORK_IPV4);
		assert_int_equal(a.address[0], 127);
		assert_int_not_equal(a.address[1], 0);
		assert_in_range(a.address[3], 1, 254);
	}
}

static void ports_that_hand_over_the_machine_are_known(void **state)
{
	static const struct {
		const char *entry;
		bool known;
	} rows[] = {
		{"tcp://localhost:2375", true},  {"tcp://127.0.0.1:2376", true},
		{"tcp://127.1.2.3:5037", true},  {"tcp://[::1]:6000", true},
		{"tcp://localhost:6063", true},  {"tcp://localhost:9222", true},
		{"127.0.0.1:9229", true},        {"tcp://localhost:6064", false},
		{"tcp://localhost:5432", false}, {"tcp://db.example:2375", false},
		{"tcp://10.0.0.1:2375", false},  {"*.example.org:2375", false},
		{"tcp://[::2]:6000", false},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct network_entry entry;
		struct err err = {0};

		if (!network_parse_entry(str_of(rows[i].entry), &entry, &err))
			fail_msg("%s: %s", rows[i].entry, err.text);
		if ((network_hands_over(&entry) != NULL) != rows[i].known)
			fail_msg("%s: %d", rows[i].entry, rows[i].known);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_read),
		cmocka_unit_test(what_is_no_entry_is_refused_with_its_rule),
		cmocka_unit_test(a_list_lets_through_what_it_names),
		cmocka_unit_test(one_port_of_the_loopback_is_one_host),
		cmocka_unit_test(published_ports_are_read),
		cmocka_unit_test(one_port_outside_is_published_once),
		cmocka_unit_test(a_project_has_one_address_of_its_own),
		cmocka_unit_test(ports_that_hand_over_the_machine_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
