/*
 * network_fuzz: each line as an entry, as an authority and as a published port. What is taken is of the letters
 * that hosts are made of, and what it is printed as is read back as the same.
 */
#include "policy/network.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_host(const struct network_host *host, uint16_t port)
{
	char text[NETWORK_TEXT_MAX];
	struct network_host again;
	uint16_t same;

	assert(port != 0 && host->text[0] != '\0');
	assert(strspn(host->text, "abcdefghijklmnopqrstuvwxyz0123456789-.:") ==
	       strlen(host->text));
	assert(network_parse_authority(str_of(network_print(host, port, text)), 0, &again,
				       &same, NULL));
	assert(same == port && network_same_host(host, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str rest = {(const char *)data, size}, line;

	while (str_next_line(&rest, &line)) {
		struct network_entry entry;
		struct network_publish publish;
		struct network_host host;
		uint16_t port;

		if (network_parse_publish(line, &publish, NULL)) {
			assert(publish.port != 0 && publish.at != 0);
			assert((publish.at == LISTENS_OWN) == (publish.address.kind == 0));
			assert(publish.address.kind != NETWORK_NAME);
		}
		if (network_parse_entry(line, &entry, NULL)) {
			check_host(&entry.host, entry.port);
			assert(entry.carried || entry.suffix ||
			       network_find(&entry, 1, &entry.host, entry.port) == &entry);
		}
		if (network_parse_authority(line, 0, &host, &port, NULL))
			check_host(&host, port);
	}
	return 0;
}
