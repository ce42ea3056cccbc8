/*
 * proxy_dns_fuzz: any bytes as an answer to a question of ours, and as the two files of a
 * machine's names. What comes out is within its bounds.
 */
#include "proxy/resolver.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = {(const char *)data, size};
	struct network_entry entry;
	struct dns_addresses found = {0};
	struct names names;

	for (int i = 0; i < 2; i++) {
		(void)resolver_dns_read_answer(bytes, "a.example",
					       i == 0 ? DNS_A : DNS_AAAA, 0x1234, &found);
		assert(found.count <= DNS_ADDRESSES_MAX);
	}
	names_init(&names);
	names_read_servers(&names, bytes);
	assert(names.server_count >= 1 && names.server_count <= NAMES_SERVERS_MAX);
	assert(names.search_count <= NAMES_SEARCH_MAX);
	if (network_parse_entry(STR("*.example"), &entry, NULL))
		names_read_hosts(&names, bytes, &entry, 1);
	names_fini(&names);
	return 0;
}
