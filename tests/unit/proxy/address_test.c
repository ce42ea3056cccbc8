/* Tests of proxy/dial: what is public, and what is none of a name's business. */
#include "../base/unit.h"

#include "proxy/dial.h"

static void each_range_is_what_it_is(void **state)
{
	static const struct {
		const char *text;
		enum address_kind kind;
	} rows[] = {
		{"1.1.1.1", ADDRESS_PUBLIC},
		{"9.255.255.255", ADDRESS_PUBLIC},
		{"10.0.0.0", ADDRESS_PRIVATE},
		{"10.255.255.255", ADDRESS_PRIVATE},
		{"11.0.0.0", ADDRESS_PUBLIC},
		{"100.63.255.255", ADDRESS_PUBLIC},
		{"100.64.0.0", ADDRESS_PRIVATE},
		{"100.127.255.255", ADDRESS_PRIVATE},
		{"100.128.0.0", ADDRESS_PUBLIC},
		{"100.100.100.200", ADDRESS_METADATA},
		{"127.0.0.1", ADDRESS_LOOPBACK},
		{"127.255.255.254", ADDRESS_LOOPBACK},
		{"128.0.0.1", ADDRESS_PUBLIC},
		{"168.63.129.16", ADDRESS_METADATA},
		{"169.253.255.255", ADDRESS_PUBLIC},
		{"169.254.0.1", ADDRESS_LINK_LOCAL},
		{"169.254.169.254", ADDRESS_METADATA},
		{"172.15.255.255", ADDRESS_PUBLIC},
		{"172.16.0.0", ADDRESS_PRIVATE},
		{"172.31.255.255", ADDRESS_PRIVATE},
		{"172.32.0.0", ADDRESS_PUBLIC},
		{"192.0.2.1", ADDRESS_SPECIAL},
		{"192.88.99.1", ADDRESS_WRAPPED},
		{"192.167.255.255", ADDRESS_PUBLIC},
		{"192.168.0.1", ADDRESS_PRIVATE},
		{"198.19.255.255", ADDRESS_SPECIAL},
		{"198.20.0.0", ADDRESS_PUBLIC},
		{"223.255.255.255", ADDRESS_PUBLIC},
		{"224.0.0.1", ADDRESS_MULTICAST},
		{"240.0.0.1", ADDRESS_SPECIAL},
		{"255.255.255.255", ADDRESS_SPECIAL},
		{"0.0.0.0", ADDRESS_SPECIAL},
		{"0.1.2.3", ADDRESS_SPECIAL},
		{"[::]", ADDRESS_SPECIAL},
		{"[::1]", ADDRESS_LOOPBACK},
		{"[::2]", ADDRESS_WRAPPED},
		{"[::127.0.0.1]", ADDRESS_WRAPPED},
		{"[::ffff:127.0.0.1]", ADDRESS_WRAPPED},
		{"[::ffff:1.1.1.1]", ADDRESS_WRAPPED},
		{"[64:ff9b::7f00:1]", ADDRESS_WRAPPED},
		{"[64:ff9b:1::1]", ADDRESS_WRAPPED},
		{"[2002:7f00:1::]", ADDRESS_WRAPPED},
		{"[2001::1]", ADDRESS_WRAPPED},
		{"[2001:db8::1]", ADDRESS_SPECIAL},
		{"[2606:4700::1111]", ADDRESS_PUBLIC},
		{"[2001:4860::8888]", ADDRESS_PUBLIC},
		{"[fc00::1]", ADDRESS_PRIVATE},
		{"[fdff::1]", ADDRESS_PRIVATE},
		{"[fd00:ec2::254]", ADDRESS_METADATA},
		{"[fe80::1]", ADDRESS_LINK_LOCAL},
		{"[febf::1]", ADDRESS_LINK_LOCAL},
		{"[fec0::1]", ADDRESS_SPECIAL},
		{"[ff02::1]", ADDRESS_MULTICAST},
		{"[4000::1]", ADDRESS_SPECIAL},
		{"[100::1]", ADDRESS_SPECIAL},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct network_host host;

		assert_true(network_parse_host(str_of(rows[i].text), &host, NULL));
		if (address_kind(&host) != rows[i].kind)
			fail_msg("%s: %s", rows[i].text,
				 address_kind_name(address_kind(&host)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_range_is_what_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
