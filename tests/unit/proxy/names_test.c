/* Tests of proxy/names: resolv.conf and hosts, as they are found on machines. */
#include "../base/unit.h"

#include <string.h>

#include "proxy/resolver.h"

static void servers_and_suffixes_are_read(void **state)
{
	static const char text[] = "# a comment\n; another\n"
				   "search old.example\n"
				   "nameserver\t192.0.2.1\r\n"
				   "nameserver 2001:db8::53 # the second\n"
				   "nameserver fe80::1%eth0\n"
				   "nameserver nonsense\n"
				   "nameserver 127.0.0.53\nnameserver 9.9.9.9\n"
				   "options edns0 trust-ad\n"
				   "search corp.example\tb_d Example.net.\n";
	struct names names;

	(void)state;
	names_init(&names);
	names_read_servers(&names, str_of(text));
	assert_int_equal(names.server_count, 3);
	assert_string_equal(names.servers[0].text, "192.0.2.1");
	assert_string_equal(names.servers[1].text, "2001:db8::53");
	assert_string_equal(names.servers[2].text, "127.0.0.53");
	assert_int_equal(names.port, 53);
	assert_int_equal(names.search_count, 2);
	assert_string_equal(names.search[0], "corp.example");
	assert_string_equal(names.search[1], "example.net");
	names_fini(&names);
	names_read_servers(&names, STR(""));
	assert_int_equal(names.server_count, 1);
	assert_string_equal(names.servers[0].text, "127.0.0.1");
	assert_true(names_set_server(&names, "127.0.0.1:5353"));
	assert_int_equal(names.port, 5353);
	assert_true(names_set_server(&names, "[::1]"));
	assert_int_equal(names.port, 53);
	assert_false(names_set_server(&names, "dns.example"));
	names_fini(&names);
}

static void only_listed_hosts_are_kept(void **state)
{
	static const char text[] = "127.0.0.1 localhost db.example # db2.example\n"
				   "10.0.0.7\tA.Example  other.example\n"
				   "::1 a.example\n"
				   "nonsense a.example\n"
				   "10.0.0.9 x.sub.example sub.example\n"
				   "10.0.0.10\n";
	struct network_entry entries[3];
	struct names names;

	(void)state;
	assert_true(network_parse_entry(STR("a.example"), &entries[0], NULL));
	assert_true(network_parse_entry(STR("*.sub.example:80"), &entries[1], NULL));
	assert_true(network_parse_entry(STR("tcp://db.example:5432"), &entries[2], NULL));
	names_init(&names);
	names_read_hosts(&names, str_of(text), entries, 3);
	assert_int_equal(names.host_count, 4);
	assert_string_equal(names.hosts[0].name, "db.example");
	assert_string_equal(names.hosts[1].name, "a.example");
	assert_string_equal(names.hosts[1].address.text, "10.0.0.7");
	assert_string_equal(names.hosts[2].address.text, "::1");
	assert_string_equal(names.hosts[3].name, "x.sub.example");
	names_fini(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(servers_and_suffixes_are_read),
		cmocka_unit_test(only_listed_hosts_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
