/*
 * lookups_fuzz: any bytes as a datagram that a program of a cell sent to a name server. The host
 * that is read of it is one that a policy could list.
 */
#include "cell/outlet.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct network_entry entry;
	struct network_host host;

	if (outlet_parse_lookup((struct str){(const char *)data, size}, &host) &&
	    (host.kind != NETWORK_NAME ||
	     !network_parse_entry(str_of(host.text), &entry, NULL)))
		abort();
	return 0;
}
